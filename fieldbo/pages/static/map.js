/* A map of values, routes and readings, on Leaflet; without tiles, so that it works offline.

   const map = new fieldbo.FieldMap(element, geometry);
   map.showValues(values, scale);      // one value per site
   map.setRoutes([points, ...]);       // one per vehicle
   map.setVehicles([point, ...]);
   map.setReadings(readings, count);   // the first so many
   map.onPoint = (point) => ...;       // under the pointer, where it was clicked, or at the cross

   Points are [latitude, longitude]; see fieldbo/pages/plane.py. Names are only ever written as text. */
(function (global) {
  "use strict";
  const fieldbo = (global.fieldbo = global.fieldbo || {});
  const L = global.L;
  const HATCH = 7, DARK = [0x55, 0x55, 0x55], LIGHT = [0xee, 0xee, 0xee]; // a hatching: pixels between its lines, and their colours
  const OUTSIDE = { 16: 0xffff, 32: 0xffffffff };
  const NEAR = 14; // pixels
  const MANY = 800; // readings; each of more would slow a phone down as an element of its own
  const MARGIN = [40, 30]; // pixels around a domain, for the labels of its axes

  /* Return the bytes of a base64 text. */
  fieldbo.bytes = function (text) {
    const raw = global.atob(text);
    const bytes = new Uint8Array(raw.length);
    for (let k = 0; k < raw.length; k++) bytes[k] = raw.charCodeAt(k);
    return bytes;
  };

  /* Return an element with attributes and text. */
  fieldbo.element = function (name, attributes, text) {
    const made = document.createElement(name);
    Object.keys(attributes || {}).forEach((key) => made.setAttribute(key, attributes[key]));
    if (text !== undefined) made.textContent = text;
    return made;
  };

  function drawing(name, attributes) {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    Object.keys(attributes).forEach((key) => made.setAttribute(key, attributes[key]));
    return made;
  }

  const INK = { stroke: "#000", "stroke-width": "1.2" };
  const SYMBOLS = {
    start: ["polygon", { points: "10,2 18,17 2,17", fill: "#56b4e9", ...INK }],
    home: ["rect", { x: 3, y: 3, width: 14, height: 14, fill: "none", stroke: "#009e73", "stroke-width": 3 }],
    reported: ["circle", { cx: 10, cy: 10, r: 7.5, fill: "none", stroke: "#cc79a7", "stroke-width": 3 }],
    measured: ["polygon", { points: "10,2 18,10 10,18 2,10", fill: "none", stroke: "#56b4e9", "stroke-width": 3 }],
    true: [
      "polygon",
      { points: "10,1 12.4,7.4 19,7.6 13.8,11.7 15.6,18.4 10,14.6 4.4,18.4 6.2,11.7 1,7.6 7.6,7.4", fill: "#f0e442", ...INK },
    ],
    vehicle: ["polygon", { points: "10,1 19,10 10,19 1,10", fill: "#e69f00", ...INK }],
    reading: ["circle", { cx: 10, cy: 10, r: 5, fill: "#fff", ...INK }],
    earlier: ["circle", { cx: 10, cy: 10, r: 4, fill: "#a8a8a8", ...INK }],
    "on the way": ["circle", { cx: 10, cy: 10, r: 2.5, fill: "#000" }],
    "left out": ["path", { d: "M4,4 L16,16 M16,4 L4,16", fill: "none", stroke: "#d55e00", "stroke-width": 3.5 }],
    route: ["path", { d: "M1,16 L9,6 L19,13", fill: "none", stroke: "#a4306f", "stroke-width": 2.5 }],
    obstacle: ["rect", { x: 2, y: 3, width: 16, height: 14, fill: "#8c8c8c", stroke: "#333", "stroke-width": 1.5 }],
  };

  /* Return the symbol of a kind of place as a drawing. */
  fieldbo.symbol = function (kind) {
    const box = drawing("svg", { viewBox: "0 0 20 20", width: 20, height: 20, "aria-hidden": "true", class: "symbol" });
    if (kind === "home" || kind === "reported" || kind === "measured") {
      box.appendChild(drawing(SYMBOLS[kind][0], { ...SYMBOLS[kind][1], stroke: "#000", "stroke-width": 5 }));
    }
    if (kind === "left out" || kind === "route") {
      box.appendChild(drawing(SYMBOLS[kind][0], { ...SYMBOLS[kind][1], stroke: "#fff", "stroke-width": 6 }));
    }
    box.appendChild(drawing(SYMBOLS[kind][0], SYMBOLS[kind][1]));
    return box;
  };

  /* A canvas takes the place of Leaflet's image. */
  const CanvasOverlay = L.ImageOverlay.extend({
    _initImage: function () {
      const canvas = (this._image = this._url);
      L.DomUtil.addClass(canvas, "leaflet-image-layer");
      if (this._zoomAnimated) L.DomUtil.addClass(canvas, "leaflet-zoom-animated");
    },
  });

  /* Return numbers at round distances between two ends, at most so many. */
  function ticks(low, high, most) {
    const rough = (high - low) / Math.max(1, most);
    if (!(rough > 0)) return { at: [low], decimals: 0 };
    const power = Math.pow(10, Math.floor(Math.log10(rough)));
    const step = [1, 2, 5, 10].map((k) => k * power).find((s) => s >= rough * 0.999);
    const at = [];
    for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k++) at.push(k * step);
    return { at: at, decimals: Math.max(0, -Math.floor(Math.log10(step) + 1e-9)) };
  }

  class FieldMap {
    constructor(element, geometry) {
      this.geometry = geometry;
      this.element = element;
      this.onPoint = null;
      this._readings = [];
      this._drawn = [];
      const earth = geometry.kind === "earth";
      const bounds = (this.bounds = L.latLngBounds(geometry.bounds));
      this._shape();
      const map = (this.map = L.map(element, {
        crs: earth ? L.CRS.EPSG3857 : L.CRS.Simple,
        attributionControl: false,
        dragging: !L.Browser.mobile, // one finger scrolls the page; two fingers move the map
        scrollWheelZoom: false,
        zoomSnap: 0,
        zoomDelta: 0.7,
        minZoom: -10,
        maxZoom: earth ? 24 : 8,
        maxBounds: bounds.pad(0.7),
        zoomControl: false,
      }));
      L.control.zoom({ position: "topright" }).addTo(map);
      ["raster", "grid", "ground", "route", "marks"].forEach((name, k) => {
        map.createPane(name).style.zIndex = String(210 + 30 * k);
      });
      this._fit();
      map.setMinZoom(map.getZoom() - 1);
      this._ground();
      this._raster();
      this._grid();
      if (earth) L.control.scale({ imperial: false, position: "bottomright" }).addTo(map);
      this._route = L.layerGroup().addTo(map);
      this._vehicles = L.layerGroup().addTo(map);
      this._areas = L.layerGroup().addTo(map);
      this._places = L.layerGroup().addTo(map);
      this._listen();
    }

    /* Make the element no higher than its content needs; a style sheet limits it. */
    _shape() {
      const crs = this.geometry.kind === "earth" ? L.CRS.EPSG3857 : L.CRS.Simple;
      const corner = crs.latLngToPoint(this.bounds.getNorthWest(), 0);
      const other = crs.latLngToPoint(this.bounds.getSouthEast(), 0);
      const ratio = Math.abs((other.y - corner.y) / (other.x - corner.x));
      this.element.style.height = Math.round((this.element.clientWidth - 2 * MARGIN[0]) * ratio + 2 * MARGIN[1]) + "px";
    }

    _fit() {
      this.map.fitBounds(this.bounds, { padding: MARGIN, animate: false });
    }

    /* Adopt a changed size of the element, and show the whole map again. */
    refit() {
      this._shape();
      this.map.invalidateSize({ animate: false });
      this.map.setMinZoom(-10);
      this._fit();
      this.map.setMinZoom(this.map.getZoom() - 1);
    }

    _ground() {
      const edge = { pane: "ground", interactive: false, color: "#333", weight: 1.2, fill: false };
      if (this.geometry.outline.length) L.polygon(this.geometry.outline, edge).addTo(this.map);
      this.geometry.obstacles.forEach((obstacle) => {
        L.polygon(obstacle.rings, { ...edge, fill: true, fillColor: "#8c8c8c", fillOpacity: 1 }).addTo(this.map);
      });
    }

    /* -- values ----------------------------------------------------------------------------------------- */

    _raster() {
      const raster = this.geometry.raster;
      if (!raster) return;
      const bytes = fieldbo.bytes(raster.sites);
      this._sites = raster.bits === 16 ? new Uint16Array(bytes.buffer) : new Uint32Array(bytes.buffer);
      this._outside = OUTSIDE[raster.bits];
      const canvas = (this._canvas = fieldbo.element("canvas", { width: raster.columns, height: raster.rows }));
      canvas.className = "fieldbo-raster";
      new CanvasOverlay(canvas, this.bounds, { pane: "raster" }).addTo(this.map);
    }

    /* Draw one value per site.

       scale: { colours, low, high }, or { classes } for whole numbers. inside (optional): one per site; a line
       is drawn between those that are and those that are not. hatched (optional): one per site. */
    showValues(values, scale, inside, hatched) {
      if (!this._canvas) return;
      const sites = this._sites, columns = this._canvas.width, rows = this._canvas.height;
      const list = (scale.classes ? scale.classes.map((c) => c.colour) : scale.colours).map((hex) => [
        parseInt(hex.slice(1, 3), 16), parseInt(hex.slice(3, 5), 16), parseInt(hex.slice(5, 7), 16),
      ]);
      const colour = new Int16Array(values.length);
      for (let k = 0; k < values.length; k++) {
        const share = scale.classes ? values[k] : ((values[k] - scale.low) / (scale.high - scale.low)) * (list.length - 1);
        colour[k] = isNaN(share) ? -1 : Math.max(0, Math.min(list.length - 1, Math.round(share)));
      }
      const context = this._canvas.getContext("2d");
      const image = context.createImageData(columns, rows);
      const pixels = image.data;
      for (let k = 0; k < sites.length; k++) {
        const site = sites[k];
        if (site === this._outside || colour[site] < 0) continue;
        const line = hatched && hatched[site] ? ((k % columns) + Math.floor(k / columns)) % HATCH : -1;
        const rgb = line === 0 ? DARK : line === 1 && !scale.classes ? LIGHT : list[colour[site]];
        pixels[4 * k] = rgb[0];
        pixels[4 * k + 1] = rgb[1];
        pixels[4 * k + 2] = rgb[2];
        pixels[4 * k + 3] = 255;
      }
      if (inside) this._edge(pixels, inside, columns, rows);
      context.putImageData(image, 0, 0);
    }

    /* Draw a black and white line where neighbouring pixels lie on different sides. */
    _edge(pixels, inside, columns, rows) {
      const sites = this._sites, outside = this._outside;
      const paint = (k, grey) => {
        if (k >= 0 && k < sites.length && sites[k] !== outside) {
          pixels[4 * k] = pixels[4 * k + 1] = pixels[4 * k + 2] = grey;
          pixels[4 * k + 3] = 255;
        }
      };
      for (let k = 0; k < sites.length; k++) {
        if (sites[k] === outside) continue;
        const side = inside[sites[k]];
        const differs = (other) => sites[other] !== outside && inside[sites[other]] !== side;
        const right = (k + 1) % columns && differs(k + 1);
        const below = k + columns < sites.length && differs(k + columns);
        if (right || below) {
          paint(k, side ? 0 : 255);
          if (right) paint(k + 1, side ? 255 : 0);
          if (below) paint(k + columns, side ? 255 : 0);
        }
      }
    }

    /* Return the number of the site at a point; -1 if there is none. */
    siteAt(point) {
      if (!this._canvas) return -1;
      const corner = this.map.project(this.bounds.getNorthWest(), 0);
      const other = this.map.project(this.bounds.getSouthEast(), 0);
      const at = this.map.project(point, 0);
      const column = Math.floor(((at.x - corner.x) / (other.x - corner.x)) * this._canvas.width);
      const row = Math.floor(((at.y - corner.y) / (other.y - corner.y)) * this._canvas.height);
      if (column < 0 || row < 0 || column >= this._canvas.width || row >= this._canvas.height) return -1;
      const site = this._sites[row * this._canvas.width + column];
      return site === this._outside ? -1 : site;
    }

    /* -- routes, vehicles and readings ------------------------------------------------------------------ */

    setRoutes(routes) {
      this._route.clearLayers();
      const look = { pane: "route", interactive: false, lineJoin: "round", smoothFactor: 0.5 };
      routes.forEach((points, k) => {
        const colour = ["#a4306f", "#005f96", "#8a5a00", "#00694d"][k % 4];
        L.polyline(points, { ...look, color: "#fff", weight: 4.5, opacity: 0.85 }).addTo(this._route);
        L.polyline(points, { ...look, color: colour, weight: 2, dashArray: k % 2 ? "7 4" : null }).addTo(this._route);
      });
    }

    setVehicles(points) {
      this._vehicles.clearLayers();
      points.forEach((point) => this._marker("vehicle", point, 18).addTo(this._vehicles));
    }

    /* Show areas that were closed under way, each { name, corners }. */
    setAreas(areas) {
      this._areas.clearLayers();
      areas.forEach((area) => {
        const look = { pane: "ground", interactive: false, color: "#9b0014", weight: 3, dashArray: "6 4" };
        L.polygon(area.corners, { ...look, fillColor: "#9b0014", fillOpacity: 0.35 }).addTo(this._areas);
        const middle = L.polygon(area.corners).getBounds().getCenter();
        const label = fieldbo.element("span", {}, area.name);
        const icon = L.divIcon({ html: label, className: "fieldbo-area", iconSize: null });
        L.marker(middle, { icon: icon, pane: "marks", interactive: false, keyboard: false }).addTo(this._areas);
      });
    }

    setPlaces(places) {
      this._places.clearLayers();
      places.forEach((place) => this._marker(place.kind, place.at, 22).addTo(this._places));
    }

    _marker(kind, point, size) {
      const symbol = fieldbo.symbol(kind);
      symbol.setAttribute("width", size);
      symbol.setAttribute("height", size);
      const icon = L.divIcon({ html: symbol, className: "fieldbo-symbol", iconSize: [size, size] });
      return L.marker(point, { icon: icon, pane: "marks", interactive: false, keyboard: false });
    }

    /* Show the first so many readings, each { at, kind, text }, and a ring around the last one of the run. */
    setReadings(readings, count) {
      this._readings = readings.slice(0, count);
      if (readings.length > MANY && !this._renderer) this._renderer = L.canvas({ pane: "marks" });
      while (this._drawn.length > count) this._drawn.pop().remove();
      for (let k = this._drawn.length; k < count; k++) this._drawn.push(this._dot(readings[k]).addTo(this.map));
      if (this._ring) this._ring.remove();
      if (count && readings[count - 1].kind !== "earlier") {
        const look = { pane: "marks", interactive: false, radius: 9, color: "#000", weight: 2, fill: false };
        this._ring = L.circleMarker(readings[count - 1].at, look).addTo(this.map);
      }
    }

    _dot(reading) {
      if (reading.kind === "left out") return this._marker("left out", reading.at, 14);
      const [radius, fill] = { "on the way": [1.2, "#000"], earlier: [3, "#a8a8a8"] }[reading.kind] || [4, "#fff"];
      return L.circleMarker(reading.at, {
        pane: "marks", interactive: false, radius: radius, color: "#000", weight: 1,
        fillColor: fill, fillOpacity: 1, renderer: this._renderer,
      });
    }

    /* -- grid ------------------------------------------------------------------------------------------- */

    _grid() {
      const lines = L.layerGroup().addTo(this.map);
      const frame = fieldbo.element("div", { class: "fieldbo-ticks", "aria-hidden": "true" });
      this.element.appendChild(frame);
      const look = { pane: "grid", interactive: false, color: "#000", weight: 0.6, opacity: 0.28 };
      const draw = () => {
        lines.clearLayers();
        while (frame.firstChild) frame.removeChild(frame.firstChild);
        const size = this.map.getSize(), seen = this.map.getBounds();
        const ends = [[seen.getWest(), seen.getEast(), size.x / 95], [seen.getSouth(), seen.getNorth(), size.y / 60]];
        this.geometry.axes.forEach((axis, j) => {
          const values = ends[j].slice(0, 2).map((x) => axis.at + axis.per * x).sort((a, b) => a - b);
          const found = ticks(values[0], values[1], ends[j][2]);
          found.at.forEach((value) => {
            const x = (value - axis.at) / axis.per;
            const line = j ? [[x, ends[0][0]], [x, ends[0][1]]] : [[ends[1][0], x], [ends[1][1], x]];
            L.polyline(line, look).addTo(lines);
            const pixel = this.map.latLngToContainerPoint(j ? [x, ends[0][0]] : [ends[1][0], x]);
            if (j ? pixel.y > size.y - 26 || pixel.y < 26 : pixel.x < 34 || pixel.x > size.x - 14) return;
            const label = fieldbo.element("span", { class: j ? "up" : "across" }, this._number(value, found.decimals, j));
            label.style[j ? "top" : "left"] = (j ? pixel.y : pixel.x) + "px";
            frame.appendChild(label);
          });
          const name = axis.unit && axis.unit !== "°" ? axis.name + " (" + axis.unit + ")" : axis.name;
          frame.appendChild(fieldbo.element("b", { class: j ? "up" : "across" }, name));
        });
      };
      this.map.on("move resize zoomend viewreset", draw);
      draw();
    }

    _number(value, decimals, j) {
      if (this.geometry.kind !== "earth") return String(Number(value.toFixed(decimals)));
      const shown = j ? value : ((((value + 180) % 360) + 360) % 360) - 180;
      const side = j ? (shown < 0 ? "S" : "N") : shown < 0 ? "W" : "E";
      return Math.abs(shown).toFixed(decimals) + "° " + side;
    }

    /* -- points ----------------------------------------------------------------------------------------- */

    /* Return what is at a point: site, coordinates along the axes, and the nearest reading, if it is near. */
    describe(point) {
      const at = L.latLng(point), pixel = this.map.latLngToContainerPoint(at);
      let nearest = null, distance = NEAR;
      this._readings.forEach((reading) => {
        const gap = this.map.latLngToContainerPoint(reading.at).distanceTo(pixel);
        if (gap < distance) [nearest, distance] = [reading, gap];
      });
      return {
        at: [at.lat, at.lng],
        site: this.siteAt(at),
        coordinates: this._coordinates(at),
        obstacle: this._obstacleAt(at),
        reading: nearest,
      };
    }

    /* Return a point in words along each axis; on earth, latitude first. */
    _coordinates(at) {
      const words = this.geometry.axes.map((axis, j) => {
        const value = axis.at + axis.per * (j ? at.lat : at.lng);
        if (this.geometry.kind === "earth") return this._number(value, 5, j);
        const shown = Number(value.toPrecision(4));
        return (axis.name + " " + shown + " " + axis.unit).trim();
      });
      return this.geometry.kind === "earth" ? words.reverse() : words;
    }

    _obstacleAt(at) {
      const within = (rings) =>
        rings.reduce((odd, ring) => {
          for (let k = 0, last = ring.length - 1; k < ring.length; last = k++) {
            const a = ring[k], b = ring[last];
            if (a[0] > at.lat !== b[0] > at.lat) {
              if (at.lng < ((b[1] - a[1]) * (at.lat - a[0])) / (b[0] - a[0]) + a[1]) odd = !odd;
            }
          }
          return odd;
        }, false);
      const found = this.geometry.obstacles.find((obstacle) => within(obstacle.rings));
      return found ? found.name : null;
    }

    _listen() {
      const tell = (point) => {
        if (this.onPoint) this.onPoint(point ? this.describe(point) : null);
      };
      const cross = fieldbo.element("div", { class: "fieldbo-cross", "aria-hidden": "true" });
      this.element.appendChild(cross);
      let keyboard = false;
      const byKeyboard = (used) => {
        keyboard = used;
        cross.hidden = !used;
        if (used) tell(this.map.getCenter());
      };
      byKeyboard(false);
      this.element.addEventListener("keyup", () => byKeyboard(true));
      this.element.addEventListener("blur", () => byKeyboard(false));
      this.map.on("mousedown touchstart", () => byKeyboard(false));
      this.map.on("mousemove click", (event) => tell(event.latlng));
      this.map.on("moveend", () => keyboard && tell(this.map.getCenter()));
      this.map.on("focus", () => this.map.scrollWheelZoom.enable());
      this.map.on("blur", () => this.map.scrollWheelZoom.disable());
    }
  }

  fieldbo.FieldMap = FieldMap;
})(window);
