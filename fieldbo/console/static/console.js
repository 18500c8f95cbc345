/* The console: it shows what the stream says, and sends commands and answers. Texts are only ever set as text. */
(function (fieldbo) {
  "use strict";
  const by = (id) => document.getElementById(id);
  const make = fieldbo.element;
  const SILENT_S = 30; // without any message, the connection is taken for lost

  let state = null, mapped = null, map = null, layer = null, kept = {}, at = null;
  let arrived = 0;
  const waiting = {}; // what was sent, by its id

  /* Set a text, unless it is there already: a screen reader would say it again. */
  function say(id, text) {
    const element = typeof id === "string" ? by(id) : id;
    if (element.textContent !== text) element.textContent = text;
    return element;
  }

  function seconds(time) {
    return Math.max(0, (Date.parse(state.now) - Date.parse(time)) / 1000 + (performance.now() - arrived) / 1000);
  }

  /* -- the stream --------------------------------------------------------------------------------------- */

  function listen() {
    const stream = new EventSource("events");
    const heard = () => {
      arrived = performance.now();
      by("connection").hidden = true;
    };
    stream.addEventListener("state", (event) => {
      heard();
      state = JSON.parse(event.data);
      showState();
    });
    stream.addEventListener("map", (event) => {
      heard();
      mapped = JSON.parse(event.data);
      kept = {};
      showMap();
    });
    stream.addEventListener("alive", heard);
    stream.addEventListener("error", () => {
      if (stream.readyState === EventSource.CLOSED) {
        lost("The console refuses this page, or has ended. Open the address that it prints when it starts again.");
        window.setTimeout(listen, 3000);
        stream.close();
      } else lost("The connection to the console is lost; trying again.");
    });
  }

  function lost(text) {
    say("connection", text);
    by("connection").hidden = false;
  }

  window.setInterval(() => {
    if (!state) return;
    if ((performance.now() - arrived) / 1000 > SILENT_S) lost("Nothing has come from the console for a while.");
    showHeard();
  }, 1000);

  /* -- the state ---------------------------------------------------------------------------------------- */

  function showState() {
    document.title = state.run + ": " + state.status.text;
    say("question", state.question);
    say("run", state.world + ": run " + state.run + " of the mission " + state.mission);
    const status = say("status", state.status.text);
    status.className = "status " + state.status.kind;
    showVehicles();
    showButtons();
    showOutcomes();
    showForm();
    showPairs("answer", state.answer);
    showList("notes", state.notes);
    showLog();
    if (map) {
      map.setVehicles(state.vehicles.map((v) => v.at).filter(Boolean));
      map.setAhead(state.vehicles.map((v) => (v.order ? v.order.ahead : [])));
    }
  }

  function showPairs(id, pairs) {
    const text = JSON.stringify(pairs), list = by(id);
    if (list.dataset.shown === text) return;
    list.dataset.shown = text;
    fieldbo.emptied(list);
    pairs.forEach((pair) => {
      const item = list.appendChild(make("div", {}));
      item.appendChild(make("dt", {}, pair[0]));
      item.appendChild(make("dd", {}, pair[1]));
    });
  }

  function showList(id, texts) {
    const text = JSON.stringify(texts), list = by(id);
    if (list.dataset.shown === text) return;
    list.dataset.shown = text;
    fieldbo.emptied(list);
    texts.forEach((each) => list.appendChild(make("li", {}, each)));
  }

  let last = 0;
  function showLog() {
    const list = by("log");
    state.log.filter((line) => line.row > last).forEach((line) => {
      const item = make("li", { value: line.row, class: line.kind });
      const time = new Date(line.time).toLocaleTimeString();
      item.appendChild(make("span", { class: "soft" }, time + " "));
      item.appendChild(document.createTextNode(line.text));
      list.insertBefore(item, list.firstChild);
      last = line.row;
    });
    while (list.children.length > 200) list.removeChild(list.lastChild);
  }

  const share = (value, whole) => Math.max(0, Math.min(100, (100 * value) / whole));

  function showVehicles() {
    const box = by("vehicles");
    while (box.children.length < state.vehicles.length) box.appendChild(vehicleBox());
    state.vehicles.forEach((vehicle, k) => {
      const part = (name) => box.children[k].querySelector("." + name);
      const many = state.vehicles.length > 1;
      say(part("name"), many ? "Vehicle " + vehicle.number : "Vehicle");
      part("name").hidden = !many;
      const left = fieldbo.number(vehicle.left) + " of " + fieldbo.amount(vehicle.battery, state.unit) + " left";
      const home = vehicle.home === null ? "" : "; " + fieldbo.amount(vehicle.home, state.unit) + " kept for the way home";
      say(part("battery"), left + home);
      part("left").style.width = share(vehicle.left, vehicle.battery) + "%";
      const mark = part("home");
      mark.hidden = vehicle.home === null;
      if (vehicle.home !== null) mark.style.left = share(vehicle.home, vehicle.battery) + "%";
      const gauge = part("gauge");
      gauge.setAttribute("aria-valuenow", String(Math.round(share(vehicle.left, vehicle.battery))));
      gauge.setAttribute("aria-valuetext", left + home);
      const order = vehicle.order;
      const doing = order
        ? (order.recharge ? "change the battery" : order.home ? "go home" : "go to " + order.to) + (order.cost ? ", about " + fieldbo.amount(order.cost, state.unit) : "")
        : vehicle.stopped ? "nothing more" : vehicle.paused_by.length ? "waits" : "nothing yet";
      say(part("order"), doing);
      say(part("place"), vehicle.place);
      const more = [];
      if (vehicle.queue > 1) more.push(vehicle.queue - 1 + " more");
      if (vehicle.wanted) more.push(vehicle.wanted + " wanted by an operator");
      say(part("more"), more.join("; ") || "nothing more");
      const why = part("why");
      const reasons = JSON.stringify(order ? order.why : []);
      if (why.dataset.shown !== reasons) {
        why.dataset.shown = reasons;
        fieldbo.emptied(why);
        (order ? order.why : []).forEach((pair) => {
          why.appendChild(make("dt", {}, pair[0]));
          why.appendChild(make("dd", {}, pair[1]));
        });
      }
      part("reasons").hidden = !order || !order.why.length;
    });
    showHeard();
  }

  function vehicleBox() {
    const box = make("div", { class: "vehicle" });
    box.appendChild(make("h3", { class: "name" }));
    box.appendChild(make("p", { class: "battery" }));
    const gauge = box.appendChild(
      make("div", { class: "gauge", role: "meter", "aria-label": "Battery", "aria-valuemin": "0", "aria-valuemax": "100", "aria-valuenow": "0" })
    );
    gauge.appendChild(make("div", { class: "left" }));
    gauge.appendChild(make("div", { class: "home" }));
    const facts = box.appendChild(make("dl", { class: "facts" }));
    [["Next order", "order"], ["Where it is", "place"], ["Link", "link"], ["In its queue", "more"]].forEach((fact) => {
      const pair = facts.appendChild(make("div", {}));
      pair.appendChild(make("dt", {}, fact[0]));
      pair.appendChild(make("dd", { class: fact[1] }));
    });
    const reasons = box.appendChild(make("details", { class: "reasons" }));
    reasons.appendChild(make("summary", {}, "Why this order"));
    reasons.appendChild(make("dl", { class: "why" }));
    return box;
  }

  function showHeard() {
    state.vehicles.forEach((vehicle, k) => {
      const box = by("vehicles").children[k];
      if (!box) return;
      let text = "nothing heard yet";
      if (vehicle.heard) {
        const age = seconds(vehicle.heard);
        text = "heard " + (age < 90 ? Math.round(age) + " s" : Math.round(age / 60) + " min") + " ago";
      }
      if (vehicle.lost) text += "; " + vehicle.lost + (vehicle.lost > 1 ? " orders" : " order") + " lost";
      (vehicle.still || []).forEach(function (what) { text += "; its " + what + " stands still"; });
      say(box.querySelector(".link"), text);
    });
  }

  /* -- commands ----------------------------------------------------------------------------------------- */

  /* Return the number of the vehicle that commands are for; null for all of them. */
  function chosen() {
    const list = by("vehicle");
    return list.value === "" || state.vehicles.length === 1 ? null : Number(list.value);
  }

  function showButtons() {
    const list = by("vehicle");
    if (state.vehicles.length > 1 && list.children.length === 0) {
      by("which").hidden = false;
      list.appendChild(make("option", { value: "" }, "all vehicles"));
      state.vehicles.forEach((v) => list.appendChild(make("option", { value: v.number }, "vehicle " + v.number)));
      list.addEventListener("change", showButtons);
    }
    const number = chosen();
    const some = state.vehicles.filter((v) => (number === null || v.number === number) && !v.stopped);
    const live = state.alive && !state.ended && some.length > 0;
    const paused = some.some((v) => v.paused_by.length);
    by("pause").disabled = !live || some.every((v) => v.paused_by.includes(""));
    by("continue").disabled = !live || !paused;
    by("skip").disabled = !live || !some.some((v) => v.order && !v.order.home);
    by("next").disabled = !live || some.every((v) => v.sent_home);
    by("no-go").disabled = !live || !map;
    by("home").disabled = !live || !some.some((v) => v.can_go_home && !v.sent_home);
    by("stop").disabled = !live;
    by("left-send").disabled = !live;
  }

  async function post(address, content) {
    let answer = {}, status = 0;
    try {
      const response = await fetch(address, {
        method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(content),
      });
      status = response.status;
      const text = await response.text();
      try {
        answer = JSON.parse(text);
      } catch (error) {
        answer = { problem: text.trim() };
      }
    } catch (error) {
      answer = { problem: "the console can't be reached" };
    }
    return status === 202 ? { id: answer.id } : { problem: answer.problem + (answer.fix ? "; " + answer.fix : "") };
  }

  function outcome(text, refused) {
    const line = say("outcome", text);
    line.classList.toggle("refused", Boolean(refused));
  }

  async function command(words, content) {
    outcome(words + ": sending");
    const all = content.action === "no-go" || content.action === "stop";
    const sent = await post("command", { ...content, vehicle: all ? null : chosen() });
    if (sent.problem) outcome(words + ": " + sent.problem, true);
    else {
      outcome(words + ": waiting for the run to confirm it");
      waiting[sent.id] = (refused) => outcome(words + (refused ? " refused: " + refused : ": confirmed"), refused);
      showOutcomes();
    }
  }

  function showOutcomes() {
    state.commands.forEach((each) => {
      if (!waiting[each.id]) return;
      const done = waiting[each.id];
      delete waiting[each.id];
      done(each.refused);
    });
  }

  /* Ask to confirm something; return whether it was confirmed. */
  function confirmed(title, text, yes) {
    const dialog = by("ask");
    say("ask-title", title);
    say("ask-text", text);
    say("ask-yes", yes);
    return new Promise((resolve) => {
      const answer = (value) => () => {
        dialog.close();
        resolve(value);
      };
      by("ask-yes").onclick = answer(true);
      by("ask-no").onclick = answer(false);
      dialog.oncancel = () => resolve(false);
      dialog.showModal();
      by("ask-no").focus();
    });
  }

  const TEXTS = {
    pause: ["Pause", "The vehicle stops where it is, and waits until you let it continue."],
    continue: ["Continue", "The vehicle gets orders again."],
    skip: ["Skip this site", "The vehicle stops going there, and the site is never proposed again."],
    home: ["Go home", "The vehicle goes home, and the mission ends there."],
    stop: ["Stop", "The vehicle holds where it is, and the mission's process ends. It can be resumed later, on its computer."],
  };
  Object.keys(TEXTS).forEach((action) => {
    by(action).addEventListener("click", async () => {
      const [title, text] = TEXTS[action];
      const number = chosen();
      const order = state.vehicles.filter((v) => number === null || v.number === number).map((v) => v.order).find((o) => o && !o.home);
      const shown = action === "skip" && order ? text + " It is " + order.to + "." : text;
      if (await confirmed(title + "?", shown, title)) {
        command(title, action === "skip" && order ? { action: action, order: order.id } : { action: action });
      }
    });
  });

  by("battery").addEventListener("submit", async (event) => {
    event.preventDefault();
    const left = by("left").value.trim(), title = "State what is left in the battery";
    const text = "From now on, the run assumes " + left + ", or less if its orders account for more.";
    if (left && (await confirmed(title + "?", text, "State it"))) {
      command(title, { action: "battery", left: left });
      by("left").value = "";
    }
  });

  /* -- picking a place, or an area ---------------------------------------------------------------------- */

  let picking = null, points = [];

  function pick(what) {
    picking = what;
    points = [];
    const area = what === "no-go";
    by("pick").hidden = !what;
    if (map) map.pick(what ? picked : null);
    if (!what) return;
    by("pick-place").hidden = area;
    by("pick-name").hidden = !area;
    by("pick-back").hidden = !area;
    by("place").value = "";
    by("area").value = "";
    say(
      "pick-text",
      area
        ? "Tap the corners of the area on the map, in order around it: at least three."
        : map ? "Tap the place on the map where the next sample is to be taken." : "Type the place where the next sample is to be taken."
    );
    say("pick-send", area ? "Close this area" : "Go there next");
    showPicked();
    if (area || map) by("map").scrollIntoView({ block: "nearest" });
    if (!map) by("place").focus();
  }

  function picked(point) {
    points = picking === "no-go" ? points.concat([point]) : [point];
    by("place").value = "";
    showPicked();
  }

  function showPicked() {
    if (map) map.setDraft(points, picking === "no-go");
    const where = points.length && map ? map.describe(points[points.length - 1]).coordinates.join(", ") : "nothing picked yet";
    say("picked", picking === "no-go" ? points.length + " corners" + (points.length ? "; the last one at " + where : "") : where);
    by("pick-send").disabled = picking === "no-go" ? points.length < 3 : !points.length && !by("place").value.trim();
  }

  by("next").addEventListener("click", () => pick("next"));
  by("no-go").addEventListener("click", () => pick("no-go"));
  by("pick-cancel").addEventListener("click", () => pick(null));
  by("pick-back").addEventListener("click", () => {
    points = points.slice(0, -1);
    showPicked();
  });
  by("place").addEventListener("input", () => {
    if (by("place").value.trim()) points = [];
    showPicked();
  });
  by("pick").addEventListener("submit", (event) => {
    event.preventDefault();
    const typed = by("place").value.trim();
    if (picking === "no-go") command("No-go area", { action: "no-go", corners: points, name: by("area").value });
    else command("Go there next", typed ? { action: "next", place: typed } : { action: "next", at: points[0] });
    pick(null);
  });

  /* -- the form ----------------------------------------------------------------------------------------- */

  let asked = null; // the order that the fields are for

  function showForm() {
    const form = state.form;
    by("form-section").hidden = !form || state.ended;
    if (!form) return;
    const waits = state.vehicles.some((v) => v.paused_by.length) ? "Paused." : "The next order is being chosen.";
    const lines = form.order ? form.task : [waits];
    const shown = JSON.stringify([form.order, lines]);
    say("form-title", form.title);
    const box = by("task");
    if (box.dataset.shown !== shown) {
      box.dataset.shown = shown;
      fieldbo.emptied(box);
      lines.forEach((line) => box.appendChild(make("p", {}, line)));
    }
    ["enter", "failed", "cannot"].forEach((id) => (by(id).disabled = !form.order || !state.alive));
    by("failed").hidden = form.home;
    if (form.order !== asked) {
      asked = form.order;
      by("doubt").hidden = by("confirm").hidden = true;
      fields(form);
    }
    by("undo").hidden = !form.last;
    if (form.last) {
      const value = form.last.value === null ? "failed" : fieldbo.number(form.last.value);
      say("last", "Order " + form.last.order.split("/").pop() + ": " + value + " was entered.");
    }
  }

  function fields(form) {
    const box = fieldbo.emptied(by("fields"));
    if (!form.order) return;
    const field = (name, label, value, mode) => {
      const line = box.appendChild(make("p", {}));
      line.appendChild(make("label", { for: "field-" + name }, label));
      const input = line.appendChild(
        make("input", { type: "text", id: "field-" + name, name: name, autocomplete: "off", ...(mode ? { inputmode: mode } : {}) })
      );
      input.value = value;
      input.dataset.given = value;
    };
    if (!form.home) {
      if (form.degrees) field("place", "Where it was read", form.place, null);
      else {
        form.axes.forEach((axis, k) => {
          const value = form.site[k];
          field("axis-" + k, axis.name + (axis.unit ? " (" + axis.unit + ")" : ""), value === null ? "" : String(Number(value.toPrecision(6))), "decimal");
        });
      }
      field("value", form.quantity, "", "decimal");
    }
    field("cost", "Cost (" + form.unit + ")", form.cost === null ? "" : String(Number(form.cost.toPrecision(6))), "decimal");
  }

  /* Return what was typed into a field; null if it was left as it was given. */
  function typed(name) {
    const input = document.querySelector("#fields [name='" + name + "']");
    return !input || input.value.trim() === input.dataset.given ? null : input.value.trim();
  }

  async function enter(content, words) {
    const sent = await post("answer", content);
    const refuse = (why) => {
      say("doubt", why);
      by("doubt").hidden = false;
      by("confirm").hidden = !/confirm it/.test(why);
    };
    if (sent.problem) {
      refuse(sent.problem);
      return;
    }
    outcome(words + ": waiting for the run to take it");
    waiting[sent.id] = (refused) => {
      outcome(words + (refused ? " refused: " + refused : ": entered"), refused);
      if (refused) refuse(refused);
      else by("doubt").hidden = by("confirm").hidden = true;
    };
    if (state) showOutcomes();
  }

  function answer(confirmedAgain, value) {
    const form = state.form;
    const content = { order: asked, confirmed: confirmedAgain };
    if (!form.home) {
      const input = document.querySelector("#fields [name='value']");
      content.value = value || input.value.trim();
      if (!content.value) {
        say("doubt", "Type what you read, or press: The reading failed.");
        by("doubt").hidden = false;
        input.focus();
        return;
      }
      if (form.degrees) {
        if (typed("place") !== null) content.place = typed("place");
      } else if (form.axes.some((axis, k) => typed("axis-" + k) !== null)) {
        content.position = form.axes.map((axis, k) => document.querySelector("#fields [name='axis-" + k + "']").value.trim());
      }
    }
    if (typed("cost") !== null) content.cost = typed("cost");
    enter(content, "Order " + asked.split("/").pop());
  }

  let again = null; // what "It is right" confirms: what was questioned, as it stood then
  by("form").addEventListener("input", () => {
    by("doubt").hidden = by("confirm").hidden = true;
  });
  by("form").addEventListener("submit", (event) => {
    event.preventDefault();
    if (event.submitter === by("confirm") && again) again();
    else {
      again = () => answer(true);
      answer(false);
    }
  });
  by("failed").addEventListener("click", () => answer(false, "failed"));
  by("cannot").addEventListener("click", async () => {
    const order = asked;
    if (await confirmed("Leave this site out?", "It costs nothing, and is never proposed again.", "Leave it out")) {
      enter({ order: order, skipped: true }, "Order " + order.split("/").pop());
    }
  });
  by("correct").addEventListener("submit", (event) => {
    event.preventDefault();
    const order = state.form.last.order, value = by("right").value.trim();
    if (!value) return;
    again = () => enter({ order: order, value: value, corrects: true, confirmed: true }, "Correction");
    enter({ order: order, value: value, corrects: true }, "Correction");
    by("right").value = "";
  });

  /* -- the map ------------------------------------------------------------------------------------------ */

  function values(each) {
    if (!kept[each.key]) kept[each.key] = fieldbo.layerValues(each, each.fixed || mapped.layers[each.key]);
    return kept[each.key];
  }

  function showMap() {
    if (!map || !mapped) return;
    map.setReadings([], 0);
    map.setReadings(mapped.readings, mapped.readings.length);
    map.setRoutes(mapped.routes);
    map.setAreas(mapped.areas);
    showPlaces();
    showLayers();
    paint();
  }

  let placed = "";
  function showPlaces() {
    const known = mapped.places.filter((place) => place.kind !== "true");
    map.setPlaces(known);
    const names = known.map((place) => place.name).join();
    if (placed === names) return;
    placed = names;
    const list = fieldbo.emptied(by("legend"));
    const add = (kind, name) => {
      const item = list.appendChild(make("li", {}));
      item.appendChild(fieldbo.symbol(kind));
      item.appendChild(document.createTextNode(name));
    };
    add("vehicle", "vehicle");
    add("route", "route so far");
    known.forEach((place) => add(place.kind, place.name));
    add("reading", "reading");
    list.appendChild(make("li", {}, "dotted line: route ahead"));
    list.appendChild(make("li", {}, "red area: no-go"));
    list.appendChild(make("li", {}, "black rings: latest reading, next site"));
  }

  function showLayers() {
    const box = by("layers");
    const keys = mapped.described.map((each) => each.key).join();
    if (box.dataset.shown !== keys) {
      box.dataset.shown = keys;
      box.hidden = !mapped.described.length;
      Array.from(box.querySelectorAll("label")).forEach((label) => label.remove());
      mapped.described.forEach((each, k) => {
        const label = box.appendChild(make("label", {}));
        const input = label.appendChild(make("input", { type: "radio", name: "layer", value: each.key }));
        input.checked = k === 0;
        input.addEventListener("change", () => {
          layer = each.key;
          paint();
        });
        label.appendChild(document.createTextNode(" " + each.label));
      });
      layer = mapped.described.length ? mapped.described[0].key : null;
    }
  }

  function paint() {
    const shown = mapped && mapped.described.find((each) => each.key === layer);
    if (!shown) return;
    const classes = mapped.described.some((each) => each.classes);
    const inside = classes ? Array.from(values(mapped.described.find((each) => each.key === "probability")), (x) => x >= 0.5) : null;
    const hatched = shown.estimated ? fieldbo.notInspected(mapped.described, values) : null;
    map.showValues(values(shown), shown, inside, hatched);
    fieldbo.colourBar(by("colours"), shown, hatched);
    readOut();
  }

  function readOut() {
    if (at && mapped) say("values", fieldbo.inWords(at, mapped.described, values));
  }

  async function begin() {
    const response = await fetch("map");
    const geometry = response.ok ? await response.json() : null;
    if (geometry) {
      by("map-section").hidden = false;
      map = new fieldbo.LiveMap(by("map"), geometry);
      map.onPoint = (point) => {
        at = point;
        readOut();
      };
      window.addEventListener("resize", () => map.refit());
    }
    listen();
  }
  begin();
})(window.fieldbo);
