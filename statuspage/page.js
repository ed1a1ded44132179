"use strict";
// The page is kept up to date by the events of its own address. Each one has all of its content; only what differs is changed, so that what is
// selected, or a button that is being pressed, is not replaced by its equal.

const main = document.querySelector("main"), live = document.querySelector("#live");

function connect() {
  const events = new EventSource("?events");
  events.addEventListener("page", ({ data }) => {
    const fresh = new DOMParser().parseFromString(`<main>${data}</main>`, "text/html").querySelector("main");
    update(main, fresh);
    show("on", "live");
  });
  events.onerror = () => {
    show("off", "not live");
    if (events.readyState === EventSource.CLOSED) setTimeout(connect, 5000); // a refusal; else the browser tries again
  };
}

function show(state, text) {
  if (live.dataset.state === state) return;
  live.dataset.state = state;
  live.textContent = text;
}

// update makes old equal to fresh. Elements with another key are of another target or tunnel: they are replaced, so that no press on a button
// is for another one than it began on.
function update(old, fresh) {
  if (old.nodeName !== fresh.nodeName || old.dataset?.key !== fresh.dataset?.key) {
    old.replaceWith(fresh);
    return;
  }
  if (old.nodeType === Node.TEXT_NODE) {
    if (old.data !== fresh.data) old.data = fresh.data;
    return;
  }
  for (const { name } of [...old.attributes]) if (!fresh.hasAttribute(name)) old.removeAttribute(name);
  for (const { name, value } of fresh.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  const before = [...old.childNodes], after = [...fresh.childNodes];
  after.forEach((node, i) => i < before.length ? update(before[i], node) : old.append(node));
  before.slice(after.length).forEach((node) => node.remove());
}

connect();
