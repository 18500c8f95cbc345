/* The page of a run: its slider, its layers, and the values at a point. */
(function (fieldbo) {
  "use strict";
  const data = JSON.parse(document.getElementById("run-data").textContent);
  const by = (id) => document.getElementById(id);
  const STEPS = data.packing.steps, MISSING = data.packing.missing;
  const PLAYED = 20000; // milliseconds, for all steps

  function unpacked(packed) {
    const whole = new Uint16Array(fieldbo.bytes(packed.values).buffer);
    const values = new Float64Array(whole.length);
    for (let k = 0; k < whole.length; k++) {
      values[k] = whole[k] === MISSING ? NaN : packed.low + ((packed.high - packed.low) * whole[k]) / STEPS;
    }
    return values;
  }

  const number = (value) => (isNaN(value) ? "unknown" : String(Number(value.toPrecision(4))));
  const amount = (value, unit) => number(value) + (unit && !isNaN(value) ? " " + unit : "");

  /* -- details and printing ----------------------------------------------------------------------------- */

  let before = null;
  window.addEventListener("beforeprint", () => {
    const details = Array.from(document.querySelectorAll("details"));
    before = { step: null, details: details.filter((d) => !d.open) };
    details.forEach((d) => (d.open = true));
    if (view) before.step = view.print();
  });
  window.addEventListener("afterprint", () => {
    if (!before) return;
    before.details.forEach((d) => (d.open = false));
    if (view) view.unprint(before.step);
    before = null;
  });

  /* -- the map ------------------------------------------------------------------------------------------ */

  class View {
    constructor() {
      this.step = 0;
      this.frames = {};
      this.layer = data.layers.length ? data.layers[0] : null;
      this.at = null;
      by("course").hidden = false; // now it has a size
      this.map = new fieldbo.FieldMap(by("map"), data.map);
      this.map.setPlaces(data.places);
      this.map.onPoint = (point) => {
        this.at = point;
        this.readOut();
      };
      this.legend();
      this.controls();
      this.show(data.steps.length - 1);
      by("still").hidden = true;
    }

    controls() {
      const slider = by("step");
      slider.max = String(data.steps.length - 1);
      slider.addEventListener("input", () => {
        this.stop();
        this.show(Number(slider.value));
      });
      by("play").addEventListener("click", () => (this.timer ? this.stop() : this.play()));
      Array.from(document.querySelectorAll("input[name=layer]")).forEach((radio) => {
        radio.addEventListener("change", () => {
          this.layer = data.layers.find((layer) => layer.key === radio.value);
          this.paint();
        });
      });
    }

    play() {
      if (this.step === data.steps.length - 1) this.show(0);
      by("facts").setAttribute("aria-live", "off"); // a screen reader could not keep up
      const pause = Math.max(80, Math.min(700, PLAYED / data.steps.length));
      this.timer = window.setInterval(() => {
        if (this.step === data.steps.length - 1) this.stop();
        else this.show(this.step + 1);
      }, pause);
      by("play").textContent = "Pause";
    }

    stop() {
      if (!this.timer) return;
      window.clearInterval(this.timer);
      this.timer = null;
      by("facts").setAttribute("aria-live", "polite");
      by("play").textContent = "Play";
      this.facts();
    }

    /* Return a layer's values, one per site, at the present step. */
    values(layer) {
      const kept = (this.frames[this.step] = this.frames[this.step] || {});
      if (!kept[layer.key]) {
        const packed = layer.fixed || data.steps[this.step].layers[layer.key];
        kept[layer.key] = layer.classes ? fieldbo.bytes(packed) : unpacked(packed);
      }
      return kept[layer.key];
    }

    show(step) {
      if (step !== this.step) delete this.frames[this.step];
      this.step = step;
      const marks = data.steps[step].marks;
      this.map.setRoutes(data.routes.map((points, k) => points.slice(0, marks.routes[k])));
      this.map.setReadings(data.readings, marks.readings);
      this.map.setVehicles(marks.vehicles);
      this.paint();
      this.facts();
      const slider = by("step");
      slider.value = String(step);
      slider.setAttribute("aria-valuetext", data.steps[step].title);
    }

    paint() {
      if (!this.layer) return;
      let inside = null;
      if (data.layers.some((layer) => layer.classes)) {
        const p = this.values(data.layers.find((layer) => layer.key === "probability"));
        inside = Array.from(p, (x) => x >= 0.5);
      }
      this.map.showValues(this.values(this.layer), this.layer, inside);
      this.bar();
      this.readOut();
    }

    /* Draw the colours of the layer with the values at their ends, or name its classes. */
    bar() {
      const bar = by("colours"), layer = this.layer;
      while (bar.firstChild) bar.removeChild(bar.firstChild);
      bar.appendChild(fieldbo.element("p", {}, layer.label + (layer.unit ? " (" + layer.unit + ")" : "")));
      if (layer.classes) {
        const list = bar.appendChild(fieldbo.element("ul", { class: "classes" }));
        layer.classes.forEach((each) => {
          const item = list.appendChild(fieldbo.element("li", {}, each.name));
          const patch = fieldbo.element("span", { class: "patch", "aria-hidden": "true" });
          patch.style.backgroundColor = each.colour;
          item.insertBefore(patch, item.firstChild);
        });
        return;
      }
      const strip = bar.appendChild(fieldbo.element("canvas", { width: layer.colours.length, height: 1, "aria-hidden": "true" }));
      const context = strip.getContext("2d");
      layer.colours.forEach((colour, k) => {
        context.fillStyle = colour;
        context.fillRect(k, 0, 1, 1);
      });
      const ends = bar.appendChild(fieldbo.element("p", { class: "ends" }));
      [layer.low, (layer.low + layer.high) / 2, layer.high].forEach((value) => {
        ends.appendChild(fieldbo.element("span", {}, number(value)));
      });
    }

    facts() {
      const box = by("facts");
      while (box.firstChild) box.removeChild(box.firstChild);
      const list = box.appendChild(fieldbo.element("dl", {}));
      data.steps[this.step].facts.forEach((fact) => {
        const pair = list.appendChild(fieldbo.element("div", {}));
        pair.appendChild(fieldbo.element("dt", {}, fact[0]));
        pair.appendChild(fieldbo.element("dd", {}, fact[1]));
      });
    }

    readOut() {
      const box = by("values"), point = this.at;
      if (!point) return;
      const parts = [point.coordinates.join(", ")];
      if (point.obstacle !== null) parts.push("obstacle: " + point.obstacle);
      else if (point.site >= 0) {
        data.layers.forEach((layer) => {
          const value = this.values(layer)[point.site];
          parts.push((layer.short || layer.label) + " " + (layer.classes ? layer.classes[value].name : amount(value, layer.unit)));
        });
      } else if (data.layers.length) parts.push("outside of the domain");
      if (point.reading) parts.push(point.reading.text);
      box.textContent = parts.join("; ");
    }

    legend() {
      const list = by("legend");
      const add = (kind, name) => {
        const item = list.appendChild(fieldbo.element("li", {}));
        item.appendChild(fieldbo.symbol(kind));
        item.appendChild(document.createTextNode(name));
      };
      add("route", "route");
      add("vehicle", data.routes.length > 1 ? "vehicles now" : "vehicle now");
      data.places.forEach((place) => add(place.kind, place.name));
      const names = { reading: "reading", "on the way": "reading on the way", "left out": "reading left out by the model" };
      Object.keys(names).forEach((kind) => {
        if (data.readings.some((reading) => reading.kind === kind)) add(kind, names[kind]);
      });
      if (data.map.obstacles.length) add("obstacle", "obstacle");
      if (data.readings.length) list.appendChild(fieldbo.element("li", {}, "black ring: latest reading"));
      if (data.map.clearance) list.appendChild(fieldbo.element("li", {}, "without colour: clearance, or out of reach"));
      if (data.layers.some((layer) => layer.classes)) {
        list.appendChild(fieldbo.element("li", {}, "black and white line: estimated edge of the set"));
      }
    }

    /* Show the last step in a size that fits on paper; return the step that was shown. */
    print() {
      const step = this.step;
      this.stop();
      this.show(data.steps.length - 1);
      by("map").classList.add("on-paper");
      this.map.refit();
      return step;
    }

    unprint(step) {
      by("map").classList.remove("on-paper");
      this.map.refit();
      this.show(step);
    }
  }

  const view = data.map ? new View() : null;
})(window.fieldbo);
