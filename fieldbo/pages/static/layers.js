/* Layers of a map: their values, their colours, and numbers in words. */
(function (fieldbo) {
  "use strict";
  const STEPS = 65534, MISSING = 65535; // see fieldbo/pages/field_map.py

  /* Return the values of a layer, one per site: numbers, or classes. */
  fieldbo.layerValues = function (layer, packed) {
    if (layer.classes) return fieldbo.bytes(packed);
    const whole = new Uint16Array(fieldbo.bytes(packed.values).buffer);
    const values = new Float64Array(whole.length);
    for (let k = 0; k < whole.length; k++) {
      values[k] = whole[k] === MISSING ? NaN : packed.low + ((packed.high - packed.low) * whole[k]) / STEPS;
    }
    return values;
  };

  fieldbo.number = (value) => (isNaN(value) ? "unknown" : String(Number(value.toPrecision(4))));
  fieldbo.amount = (value, unit) => fieldbo.number(value) + (unit && !isNaN(value) ? " " + unit : "");

  /* Remove all that an element holds, and return it. */
  fieldbo.emptied = function (element) {
    while (element.firstChild) element.removeChild(element.firstChild);
    return element;
  };

  /* Return, for each site, whether nobody has inspected it: its class is hatched. Null without classes. */
  fieldbo.notInspected = function (layers, values) {
    const layer = layers.find((each) => each.classes);
    return layer ? Array.from(values(layer), (value) => layer.classes[value].hatched) : null;
  };

  /* Draw the colours of a layer with the values at their ends, or name its classes. Of other layers, name
     what is hatched, if anything is. */
  fieldbo.colourBar = function (bar, layer, hatched) {
    fieldbo.emptied(bar);
    bar.appendChild(fieldbo.element("p", {}, layer.label + (layer.unit ? " (" + layer.unit + ")" : "")));
    const named = (classes) => {
      const list = bar.appendChild(fieldbo.element("ul", { class: "classes" }));
      classes.forEach((each) => {
        const item = list.appendChild(fieldbo.element("li", {}, each.name));
        const patch = fieldbo.element("span", { class: "patch", "aria-hidden": "true" });
        if (each.colour) patch.style.backgroundColor = each.colour;
        if (each.hatched) patch.classList.add("hatched");
        item.insertBefore(patch, item.firstChild);
      });
    };
    if (layer.classes) return named(layer.classes);
    const strip = bar.appendChild(fieldbo.element("canvas", { width: layer.colours.length, height: 1, "aria-hidden": "true" }));
    const context = strip.getContext("2d");
    layer.colours.forEach((colour, k) => {
      context.fillStyle = colour;
      context.fillRect(k, 0, 1, 1);
    });
    const ends = bar.appendChild(fieldbo.element("p", { class: "ends" }));
    [layer.low, (layer.low + layer.high) / 2, layer.high].forEach((value) => {
      ends.appendChild(fieldbo.element("span", {}, fieldbo.number(value)));
    });
    if (hatched && hatched.some(Boolean)) named([{ name: "not inspected", hatched: true }]);
  };

  /* Return what is at a point of a map in words; values(layer) returns those of a layer. */
  fieldbo.inWords = function (point, layers, values) {
    const parts = [point.coordinates.join(", ")];
    if (point.obstacle !== null) parts.push("obstacle: " + point.obstacle);
    else if (point.site >= 0) {
      layers.forEach((layer) => {
        const value = values(layer)[point.site];
        parts.push((layer.short || layer.label) + " " + (layer.classes ? layer.classes[value].name : fieldbo.amount(value, layer.unit)));
      });
    } else if (layers.length) parts.push("outside of the domain");
    if (point.reading) parts.push(point.reading.text);
    return parts.join("; ");
  };
})(window.fieldbo);
