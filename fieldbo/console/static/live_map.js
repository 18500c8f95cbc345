/* A map on which a run goes on: the route ahead, closed areas, and places that are picked.

   const map = new fieldbo.LiveMap(element, geometry);
   map.setAhead([points, ...]);             // routes that vehicles are to take
   map.pick((point) => ...);                // from now on, a tap picks a place; pick(null) ends that
   map.setDraft(points, closed);            // what was picked so far                                     */
(function (fieldbo) {
  "use strict";
  const L = window.L;

  class LiveMap extends fieldbo.FieldMap {
    constructor(element, geometry) {
      super(element, geometry);
      this._ahead = L.layerGroup().addTo(this.map);
      this._draft = L.layerGroup().addTo(this.map);
      this._picked = null;
      this.map.on("click", (event) => this._picked && this._picked([event.latlng.lat, event.latlng.lng]));
      element.addEventListener("keydown", (event) => {
        if (event.key !== "Enter" || !this._picked || event.target !== element) return;
        event.preventDefault();
        const middle = this.map.getCenter();
        this._picked([middle.lat, middle.lng]);
      });
    }

    setAhead(routes) {
      this._ahead.clearLayers();
      routes.forEach((points) => {
        if (points.length < 2) return;
        const look = { pane: "route", interactive: false };
        L.polyline(points, { ...look, color: "#fff", weight: 5 }).addTo(this._ahead);
        L.polyline(points, { ...look, color: "#000", weight: 2.5, dashArray: "2 6" }).addTo(this._ahead);
        L.circleMarker(points[points.length - 1], {
          pane: "marks", interactive: false, radius: 9, color: "#000", weight: 3, fill: false,
        }).addTo(this._ahead);
      });
    }

    pick(picked) {
      this._picked = picked;
      this.element.classList.toggle("picking", Boolean(picked));
      if (!picked) this.setDraft([], false);
    }

    setDraft(points, closed) {
      this._draft.clearLayers();
      const look = { pane: "route", interactive: false, color: "#9b0014", weight: 3 };
      if (closed && points.length > 2) L.polygon(points, { ...look, fillOpacity: 0.2 }).addTo(this._draft);
      else if (points.length > 1) L.polyline(points, look).addTo(this._draft);
      points.forEach((point) => {
        L.circleMarker(point, { ...look, pane: "marks", radius: 7, fillColor: "#fff", fillOpacity: 1 }).addTo(this._draft);
      });
    }
  }

  fieldbo.LiveMap = LiveMap;
})(window.fieldbo);
