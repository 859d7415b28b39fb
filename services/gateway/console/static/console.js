// Keeps a page up to date, and takes decisions at the keyboard. Every page works without it.
//
// It never makes HTML of a text: it asks the server for the page as it is now, and puts the
// parts of that in the place of those that differ.
"use strict";
(() => {
  const main = document.getElementById("main");
  const projects = main.dataset.live.trim().split(" ").filter(Boolean);

  // busy reports whether a person is at work in a part: it is not taken from under their hands.
  const busy = (part) => part.querySelector("details.decision[open]") !== null ||
    part.contains(document.activeElement) && document.activeElement.matches("input, textarea, select, button, summary") ||
    [...part.querySelectorAll("input:not([type=hidden]), textarea")].some((field) => field.value !== field.defaultValue);

  // plain returns a part without what is another one each time.
  const plain = (part) => part.innerHTML.replace(/ (name="key" value|id|for)="[^"]*"/g, "").replace(/<time[^]*?<\/time>/g, "");

  const refresh = async () => {
    const answer = await fetch(location.href, { credentials: "same-origin", cache: "no-store" });
    if (answer.status === 401) { location.reload(); return; }
    if (!answer.ok) return;
    const now = new DOMParser().parseFromString(await answer.text(), "text/html");
    for (const part of [...main.querySelectorAll("[data-part]")]) {
      const other = now.getElementById(part.id);
      if (other === null) {
        if (!busy(part)) part.remove(); else part.classList.add("outdated");
      } else if (plain(other) !== plain(part)) {
        if (busy(part)) { part.classList.add("outdated"); continue; }
        const focused = document.activeElement === part, fresh = document.adoptNode(other);
        part.replaceWith(fresh);
        if (focused) fresh.focus();
      }
    }
    let last = null;
    for (const other of [...now.querySelectorAll("[data-item]")]) { // those that are new
      const here = document.getElementById(other.id);
      if (here === null) {
        const item = document.adoptNode(other);
        if (last !== null) last.after(item); else document.getElementById("head").after(item);
        last = item;
      } else last = here;
    }
    for (const other of now.querySelectorAll("[data-part]:not([data-item])")) {
      if (document.getElementById(other.id) === null) document.getElementById("head").classList.add("outdated");
    }
    const empty = main.querySelector(".empty");
    if (empty !== null && main.querySelector("[data-item]") !== null) empty.remove();
  };

  // Of many changes at once, the page is asked for once, and once more at the end.
  let asked = false, again = false;
  const changed = async () => {
    if (asked) { again = true; return; }
    asked = true;
    await new Promise((then) => setTimeout(then, 150));
    again = false;
    try { await refresh(); } catch { /* the next change, or a reload, shows it */ }
    asked = false;
    if (again) changed();
  };
  // Every kind of change that the server tells (TestScriptKnowsChanges).
  const kinds = ["submitted", "planned", "waiting", "approved", "resumed", "executing", "iterated", "changes-requested", "checks-failed", "task-done",
    "task-failed", "done", "blocked", "rejected", "cancelled"];
  let sources = [];
  const listen = () => {
    sources = projects.map((project) => {
      const source = new EventSource("/console/projects/" + encodeURIComponent(project) + "/events");
      for (const kind of kinds) source.addEventListener(kind, changed);
      source.addEventListener("open", () => { document.getElementById("offline").hidden = true; changed(); });
      source.addEventListener("error", (event) => { // an intent's, if it has data
        if (event instanceof MessageEvent) changed(); else document.getElementById("offline").hidden = source.readyState !== EventSource.CLOSED;
      });
      return source;
    });
  };
  // A page that is not seen gives its connections back, of which a browser has few.
  const seen = () => {
    for (const source of sources) source.close();
    sources = [];
    if (document.visibilityState === "visible") listen();
  };
  document.addEventListener("visibilitychange", seen);
  addEventListener("pagehide", () => { for (const source of sources) source.close(); });
  seen();

  // j and k go to the next and the former item, enter opens it; a, e, t, r and u decide. What ends or starts
  // something opens its form, or has the button in focus: enter sends it.
  document.addEventListener("keydown", (press) => {
    if (press.ctrlKey || press.metaKey || press.altKey || /^(INPUT|TEXTAREA|SELECT)$/.test(press.target.tagName)) return;
    const items = [...main.querySelectorAll("[data-item]")];
    const here = items.findIndex((item) => item.contains(document.activeElement));
    const go = (n) => { const item = items[Math.max(0, Math.min(n, items.length - 1))]; item.focus(); item.scrollIntoView({ block: "nearest" }); };
    if (items.length === 0) return;
    if (press.key === "j" || press.key === "k") { go(here < 0 ? 0 : press.key === "j" ? here + 1 : here - 1); press.preventDefault(); return; }
    if (here < 0) return;
    if (press.key === "Enter" && document.activeElement === items[here]) { items[here].querySelector("h2 a").click(); return; }
    const choice = items[here].querySelector('[data-key="' + CSS.escape(press.key) + '"]');
    if (choice === null) return;
    press.preventDefault();
    if (choice.tagName === "DETAILS") { choice.open = true; choice.querySelector("textarea, input:not([type=hidden])").focus(); } else choice.querySelector("input:not([type=hidden]), button").focus();
  });
})();
