// Each panel is a function that reproduces one incident, reports what it sees
// and throws if culvert does not prevent it. A "then" side is evidence only:
// browsers differ in how they suffered.

const panels = { first, upgrade, watch, gone, affinity, assets };
const backend = "http://{{GONE}}";
const run = () => Math.random().toString(36).slice(2);

// first runs before everything else: no other request has gone to its location.
async function first(say) {
  const size = JSON.stringify({ Width: 80, Height: 20 });
  const start = performance.now();
  const frame = await echo(`/socket/first?${run()}`, size, () => say("now", `open after ${since(start)}, nothing before it`));
  say("now", `sent on open:  ${size}`);
  say("now", `echoed:        ${frame}`);
  expect(frame === size, "the first frame came back changed");
  return "Opened on the first request; the first frame arrived.";
}

async function upgrade(say) {
  const id = run();
  const refused = await echo(`/socket/before?${id}`, "hello").then(() => false, () => true);
  say("then", refused ? "WebSocket: failed" : "WebSocket: opened");
  const frame = await echo(`/socket/now?${id}`, "hello");
  say("now", "WebSocket: open");
  say("now", `echoed: ${frame}`);
  for (const request of await json(`/socket/received?${id}`)) {
    const side = request.uri.startsWith("/socket/before") ? "then" : "now";
    say(side, `the server saw Upgrade: ${request.upgrade || "–"}`);
    say(side, `and responded with ${request.status}`);
  }
  expect(refused, "the configuration without the lines forwarded an upgrade");
  expect(frame === "hello", "the echo came back changed");
  return "The configuration decides, and says what it means.";
}

async function watch(say) {
  // The server sends an event when the page has seen the one before: two in one read were held back.
  const slices = "/apis/discovery.k8s.io/v1/endpointslices", id = run();
  const response = await fetch(`${slices}?watch=1&step=${id}`);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  const start = performance.now();
  let reads = 0, events = 0, rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) break;
    reads++;
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    for (const line of lines) {
      const { type, object } = JSON.parse(line);
      events++;
      say("now", `+${since(start)}  ${type} ${object.metadata.name ?? ""}`);
      await fetch(`${slices}?seen=${id}`);
    }
  }
  expect(events === 6 && rest === "", `${events} events of 6`);
  expect(reads >= events, `${events} events in ${reads} reads`);
  return `${events} events in ${reads} reads.`;
}

async function gone(say) {
  const page = `/gone/page?${run()}`;
  for (let time = 1; time <= 2; time++) {
    await visit(backend + page);
    say("then", `visit ${time}: requests at the server: ${await visits(page)}`);
  }
  const direct = await visits(page);
  let response;
  for (let time = 1; time <= 2; time++) {
    response = await fetch(page);
    say("now", `visit ${time}: ${response.status}, requests at the server: ${await visits(page) - direct}`);
  }
  say("now", `Cache-Control: ${response.headers.get("Cache-Control")}`);
  expect(response.status === 410, `status ${response.status}`);
  expect(await visits(page) - direct === 2, "the second visit never reached the server");
  return "Requested again on the second visit.";
}

async function affinity(say) {
  const names = async (location) => {
    const list = [];
    for (let i = 0; i < 6; i++) list.push((await json(`${location}?${run()}`)).upstream);
    return list;
  };
  const turns = await names("/turns"), mine = await names("/console");
  turns.forEach((name) => say("then", name));
  mine.forEach((name) => say("now", name));
  expect(new Set(turns).size === 2, "the round robin used one server only");
  expect(new Set(mine).size === 1, "ip_hash changed the server");
  return `You belong to ${mine[0]}.`;
}

async function assets(say) {
  const there = await fetch("/assets/page.css");
  const missing = await fetch("/assets/missing.css");
  for (const [side, response] of [["then", there], ["now", missing]]) {
    say(side, `${response.status}`);
    say(side, `Cache-Control: ${response.headers.get("Cache-Control")}`);
  }
  expect(there.headers.get("Cache-Control")?.includes("max-age=604800"), "the style sheet has no seven days");
  expect(missing.status === 404 && missing.headers.get("Cache-Control") === "private, no-cache", "the error page may stick");
  return "Seven days for the one, none for the other.";
}

// echo opens a WebSocket, sends a frame as soon as it is open and returns the
// first frame that comes back.
function echo(path, frame, opened = () => {}) {
  return new Promise((resolve, reject) => {
    const socket = new WebSocket(path);
    const late = setTimeout(() => socket.close(), 10_000);
    socket.onopen = () => { opened(); socket.send(frame); };
    socket.onmessage = ({ data }) => { resolve(data); socket.close(); };
    socket.onclose = () => { clearTimeout(late); reject(new Error("the WebSocket was closed without a frame")); };
  });
}

async function json(path) {
  const response = await fetch(path);
  expect(response.ok, `${path}: ${response.status}`);
  return response.json();
}

// visit opens a page of another origin as a browser's tab would.
const visit = (page) => new Promise((loaded) => {
  const frame = document.createElement("iframe");
  frame.hidden = true;
  frame.addEventListener("load", () => { frame.remove(); loaded(); });
  frame.src = page;
  document.body.append(frame);
});

const visits = async (page) => (await json(`/gone/visits?of=${encodeURIComponent(page)}`)).visits;
const since = (start) => `${Math.round(performance.now() - start)} ms`;

function expect(truth, otherwise) {
  if (!truth) throw new Error(otherwise);
}

async function runPanel(name) {
  const section = document.getElementById(name);
  const verdict = section.querySelector(".verdict");
  section.dataset.state = "running";
  verdict.textContent = "";
  section.querySelectorAll("[data-side]").forEach((list) => list.replaceChildren());
  const say = (side, text) => {
    const item = document.createElement("li");
    item.textContent = text;
    section.querySelector(`[data-side=${side}]`).append(item);
  };
  try {
    verdict.textContent = await panels[name](say);
    section.dataset.state = "pass";
  } catch (error) {
    verdict.textContent = error.message;
    section.dataset.state = "fail";
  }
}

async function runAll() {
  const again = document.getElementById("again"), score = document.getElementById("score");
  again.disabled = true;
  score.textContent = "running";
  const names = Object.keys(panels);
  await Promise.all(names.map(runPanel));
  const passed = names.filter((name) => document.getElementById(name).dataset.state === "pass").length;
  score.textContent = `${passed} of ${names.length} incidents did not happen`;
  document.title = `${passed}/${names.length} culvert`;
  again.disabled = false;
}

document.getElementById("again").addEventListener("click", runAll);
runAll();
