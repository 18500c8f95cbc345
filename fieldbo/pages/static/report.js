/* The page of a run: its slider, its layers, and the values at a point. */
(function (fieldbo) {
  "use strict";
  const data = JSON.parse(document.getElementById("run-data").textContent);
  const by = (id) => document.getElementById(id);
  const PLAYED = 20000; // milliseconds, for all steps

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
        kept[layer.key] = fieldbo.layerValues(layer, packed);
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
      this.map.setAreas(data.areas.slice(0, marks.areas));
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
      const hatched = this.layer.estimated ? fieldbo.notInspected(data.layers, (layer) => this.values(layer)) : null;
      this.map.showValues(this.values(this.layer), this.layer, inside, hatched);
      fieldbo.colourBar(by("colours"), this.layer, hatched);
      this.readOut();
    }

    facts() {
      const box = fieldbo.emptied(by("facts"));
      const list = box.appendChild(fieldbo.element("dl", {}));
      data.steps[this.step].facts.forEach((fact) => {
        const pair = list.appendChild(fieldbo.element("div", {}));
        pair.appendChild(fieldbo.element("dt", {}, fact[0]));
        pair.appendChild(fieldbo.element("dd", {}, fact[1]));
      });
    }

    readOut() {
      if (this.at) by("values").textContent = fieldbo.inWords(this.at, data.layers, (layer) => this.values(layer));
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
      const names = {
        reading: "reading", "on the way": "reading on the way", "left out": "reading left out by the model",
        earlier: "earlier reading",
      };
      Object.keys(names).forEach((kind) => {
        if (data.readings.some((reading) => reading.kind === kind)) add(kind, names[kind]);
      });
      if (data.map.obstacles.length) add("obstacle", "obstacle");
      if (data.areas.length) list.appendChild(fieldbo.element("li", {}, "red area: closed under way"));
      if (data.readings.some((reading) => reading.kind !== "earlier")) list.appendChild(fieldbo.element("li", {}, "black ring: latest reading"));
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
