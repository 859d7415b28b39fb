// Keeps a page up to date, and takes decisions at the keyboard. Every page works without it.
//
// It never makes HTML of a text: it asks the server for the page as it is now, and puts the
// parts of that in the place of those that differ.
"use strict";
(() => {
  const main = document.getElementById("main");
  const projects = main.dataset.live.trim().split(" ").filter(Boolean);

  // busy reports whether a person is at work in a part: it is not taken from under their hands.
  const busy = (part) => part.querySelector("details.decision[open], input:checked") !== null ||
    part.contains(document.activeElement) && document.activeElement.matches("input, textarea, select, button, summary") ||
    [...part.querySelectorAll("input:not([type=hidden]), textarea")].some((field) => field.value !== field.defaultValue);

  // plain returns a part without what is another one each time.
  const plain = (part) => part.innerHTML.replace(/ (name="(?:key|pick)" value|id|for)="[^"]*"/g, "").replace(/<time[^]*?<\/time>/g, "");

  // block takes the buttons of a part, whose decision is of something else than what there is now. What it shows stays
  // until the person wants to see what there is: nobody decides about what was put under their eyes unseen.
  const block = (part, words, label, look) => {
    if (part.classList.contains("blocked")) return;
    part.classList.add("blocked");
    for (const button of part.querySelectorAll("form button, form input, input[form]")) button.disabled = true;
    const note = document.createElement("p"), text = document.createElement("span");
    note.className = "changed";
    note.setAttribute("role", "status");
    text.textContent = words;
    note.append(text);
    if (look !== null) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = label;
      button.addEventListener("click", look);
      note.append(" ", button);
    }
    part.append(note);
  };

  // What is not where it was a moment ago is not clicked by one who meant what was there.
  let moved = -Infinity;
  const replace = (part, other) => {
    const focused = document.activeElement === part, fresh = document.adoptNode(other), before = part.offsetHeight;
    part.replaceWith(fresh);
    if (fresh.offsetHeight !== before) moved = performance.now();
    if (focused) fresh.focus();
  };
  addEventListener("click", (click) => {
    if (click.detail > 0 && performance.now() - moved < 700 && click.target.closest("form, summary") !== null) { click.preventDefault(); click.stopPropagation(); }
  }, true);

  // renew brings an item up to date: one that shows something else to decide about waits until the person asks for it.
  const newest = new Map();
  const renew = (item, other) => {
    newest.set(item.id, other);
    if (item.classList.contains("blocked")) return;
    if (other === null) {
      item.style.minHeight = item.getBoundingClientRect().height + "px"; // what is below it stays where it is
      item.removeAttribute("data-item");
      item.removeAttribute("data-part");
      block(item, "It does not wait for you any more.", "", null);
    } else if (other.dataset.shown !== item.dataset.shown) {
      block(item, "It has changed since it was shown.", "Show it as it is now", () => {
        const now = newest.get(item.id);
        if (now === null) { item.remove(); return; }
        replace(item, now);
        now.focus();
      });
    } else if (plain(other) !== plain(item)) {
      if (busy(item)) item.classList.add("outdated"); else replace(item, other);
    }
  };

  // tag is that of the page as it is shown, null while something else is shown: then all of it is asked for.
  let tag = null;
  const refresh = async () => {
    const answer = await fetch(location.href, { credentials: "same-origin", cache: "no-store", headers: tag === null ? {} : { "If-None-Match": tag } });
    if (answer.status === 304) return; // it is as it was
    if (answer.status === 401) { document.getElementById("ended").hidden = false; return; }
    if (answer.status === 403) { // the role was taken away: what is shown is not the person's to decide about
      for (const button of main.querySelectorAll("form button, form input")) button.disabled = true;
      document.getElementById("barred").hidden = false;
      return;
    }
    if (answer.status >= 500) setTimeout(changed, 2000 + 2000 * Math.random()); // it is asked for again, and not by all at once
    if (!answer.ok) return;
    tag = null; // the answer may break off, and what it has may not be shown yet
    const now = new DOMParser().parseFromString(await answer.text(), "text/html");
    const page = main.querySelector("article.change");
    if (page !== null) { // of the page of an intent, parts go together, or none does
      if (page.classList.contains("blocked")) return;
      if (now.querySelector("article.change")?.dataset.shown !== page.dataset.shown) {
        block(page, "This has changed since the page was made.", "Show it as it is now", () => location.reload());
        return;
      }
    }
    for (const part of [...main.querySelectorAll("[data-part]")]) {
      const other = now.getElementById(part.id);
      if (part.matches("[data-item]")) renew(part, other);
      else if (other === null) {
        if (busy(part)) part.classList.add("outdated"); else { part.remove(); moved = performance.now(); }
      } else if (plain(other) !== plain(part)) {
        if (busy(part)) part.classList.add("outdated"); else replace(part, other);
      }
    }
    const items = [...main.querySelectorAll("article.card")];
    let last = items[items.length - 1] ?? document.getElementById("head");
    for (const other of [...now.querySelectorAll("[data-item]")]) { // those that are new come last: nothing is pushed down
      const here = document.getElementById(other.id);
      if (here !== null && here.matches("[data-item]")) continue;
      if (here !== null) here.removeAttribute("id"); // it waits again
      const item = document.adoptNode(other);
      last.after(item);
      last = item;
    }
    for (const other of now.querySelectorAll("[data-part]:not([data-item])")) {
      if (document.getElementById(other.id) === null) document.getElementById("head").classList.add("outdated");
    }
    const empty = main.querySelector(".empty");
    if (empty !== null && main.querySelector("[data-item]") !== null) empty.remove();
    if (main.querySelector(".outdated") === null) tag = answer.headers.get("ETag");
  };

  // The page is asked for after the first change, with those that come right behind it, and of many that follow at once every tenth of a second.
  let asked = false, again = false, last = -Infinity;
  const changed = async () => {
    if (asked) { again = true; return; }
    asked = true;
    await new Promise((then) => setTimeout(then, Math.max(20, last + 100 - performance.now())));
    again = false;
    last = performance.now();
    try { await refresh(); } catch { /* the next change, or a reload, shows it */ }
    asked = false;
    if (again) changed();
  };
  // Every kind of change that the server tells (TestScriptKnowsChanges).
  const kinds = ["submitted", "planned", "waiting", "approved", "resumed", "executing", "iterated", "changes-requested", "checks-failed", "commented",
    "task-done", "task-failed", "done", "blocked", "rejected", "cancelled"];
  let sources = [], lost = null;
  // A browser tries again by itself, and for ever where there is no gateway: after a while the person is told.
  const connected = (is) => {
    clearTimeout(lost);
    lost = is ? null : setTimeout(() => { document.getElementById("offline").hidden = false; }, 3000);
    if (is) document.getElementById("offline").hidden = true;
  };
  const listen = () => {
    sources = projects.map((project) => {
      const source = new EventSource("/console/projects/" + encodeURIComponent(project) + "/events");
      for (const kind of kinds) source.addEventListener(kind, changed);
      source.addEventListener("open", () => { connected(true); changed(); });
      source.addEventListener("error", (event) => { // an intent's, if it has data
        if (event instanceof MessageEvent) changed(); else if (lost === null) connected(false);
      });
      return source;
    });
  };
  // A page that is not seen gives its connections back, of which a browser has few.
  const seen = () => {
    for (const source of sources) source.close();
    sources = [];
    clearTimeout(lost);
    lost = null;
    if (document.visibilityState === "visible") listen();
  };
  document.addEventListener("visibilitychange", seen);
  addEventListener("pagehide", () => { for (const source of sources) source.close(); });
  seen();

  // j and k go to the next and the former item, enter opens it, x selects it; a, c, e, t, r and u decide. What ends or starts
  // something opens its form, or has the button in focus: enter sends it.
  document.addEventListener("keydown", (press) => {
    if (press.ctrlKey || press.metaKey || press.altKey || /^(INPUT|TEXTAREA|SELECT)$/.test(press.target.tagName) && press.target.type !== "checkbox") return;
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
    if (choice.tagName === "LABEL") { choice.click(); items[here].focus(); }
    else if (choice.tagName === "A") choice.focus();
    else if (choice.tagName === "DETAILS") { choice.open = true; choice.querySelector("textarea, input:not([type=hidden])").focus(); } else choice.querySelector("input:not([type=hidden]), button").focus();
  });
})();
