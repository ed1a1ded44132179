import { Screen } from './screen.js';
import { View } from './view.js';
import { Session } from './session.js';
import { bytesOf } from './keys.js';

const form = document.querySelector('#open');
const state = document.querySelector('#state');
const frame = document.querySelector('#terminal');
const keys = document.querySelector('#keys');

const view = new View(frame, document.querySelector('#rows'));
const { columns, rows } = view.size();
const screen = new Screen(columns, rows, (text) => session?.input(text));
let session = null;

const parameters = new URLSearchParams(location.search);
for (const field of ['namespace', 'pod', 'container', 'command']) {
  if (parameters.has(field)) form.elements[field].value = parameters.get(field);
}

function address() {
  const f = form.elements;
  const url = new URL(`/api/v1/namespaces/${encodeURIComponent(f.namespace.value)}/pods/${encodeURIComponent(f.pod.value)}/exec`, location.href);
  url.protocol = location.protocol === 'https:' ? 'wss:' : 'ws:';
  for (const stream of ['stdin', 'stdout', 'tty']) url.searchParams.set(stream, 'true');
  if (f.container.value) url.searchParams.set('container', f.container.value);
  for (const word of f.command.value.split(/\s+/).filter(Boolean)) url.searchParams.append('command', word);
  return url;
}

function open() {
  session?.close();
  screen.reset();
  state.value = 'connecting';
  const mine = new Session(address(), view.size(), {
    opened: () => { state.value = 'connected'; },
    output: (text) => { screen.write(text); view.draw(screen); },
    ended: (why) => { if (session === mine) { session = null; state.value = why; } },
  });
  session = mine;
  view.draw(screen);
  keys.focus();
}

form.addEventListener('submit', (event) => { event.preventDefault(); open(); });
frame.addEventListener('mouseup', () => { if (getSelection().isCollapsed) keys.focus(); });

keys.addEventListener('keydown', (event) => {
  if (event.isComposing) return;
  const bytes = bytesOf(event, screen.modes.application);
  if (bytes === undefined) return;
  event.preventDefault();
  session?.input(bytes);
});
keys.addEventListener('input', (event) => {
  if (event.isComposing) return;
  session?.input(keys.value);
  keys.value = '';
});
keys.addEventListener('compositionend', () => {
  session?.input(keys.value);
  keys.value = '';
});
keys.addEventListener('paste', (event) => {
  event.preventDefault();
  const text = event.clipboardData.getData('text').replace(/\r?\n/g, '\r');
  session?.input(screen.modes.bracketed ? `\x1b[200~${text}\x1b[201~` : text);
});

new ResizeObserver(() => {
  const size = view.size();
  if (size.columns === screen.columns && size.rows === screen.rows) return;
  screen.resize(size.columns, size.rows);
  session?.resize(size);
  view.draw(screen);
}).observe(frame);

view.draw(screen);
if (parameters.has('pod')) open();
