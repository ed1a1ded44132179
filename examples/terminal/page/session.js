// Session is an exec over the subprotocol that a browser can speak with text alone:
// v4.base64.channel.k8s.io. A message is the digit of a channel and base64.

const Stdin = 0, Stdout = 1, Stderr = 2, Status = 3, Resize = 4;

const encode = (bytes) => {
  let s = '';
  for (let i = 0; i < bytes.length; i += 4096) s += String.fromCharCode(...bytes.subarray(i, i + 4096));
  return btoa(s);
};
const decode = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));

export class Session {
  // on has the functions output(text), opened() and ended(why).
  constructor(url, size, on) {
    this.on = on;
    this.size = size;
    this.decoders = { [Stdout]: new TextDecoder(), [Stderr]: new TextDecoder() };
    this.socket = new WebSocket(url, ['v4.base64.channel.k8s.io']);
    this.socket.onopen = () => {
      this.resize(this.size); // before anything is printed
      on.opened();
    };
    this.socket.onmessage = (event) => this.receive(event.data);
    this.socket.onclose = (event) => on.ended(this.status ?? `connection closed: ${event.code} ${event.reason}`);
  }

  receive(message) {
    const channel = Number(message[0]), data = decode(message.slice(1));
    if (channel === Status) this.status = describe(JSON.parse(new TextDecoder().decode(data)));
    else if (this.decoders[channel]) this.on.output(this.decoders[channel].decode(data, { stream: true }));
  }

  send(channel, text) {
    if (this.socket.readyState === WebSocket.OPEN) this.socket.send(channel + encode(new TextEncoder().encode(text)));
  }

  input(text) { this.send(Stdin, text); }

  resize({ columns, rows }) {
    this.size = { columns, rows };
    this.send(Resize, JSON.stringify({ Width: columns, Height: rows }));
  }

  close() { this.socket.close(); }
}

function describe(status) {
  if (status.status === 'Success') return 'ended';
  const cause = status.details?.causes?.find((c) => c.reason === 'ExitCode');
  return cause ? `ended with exit code ${cause.message}` : status.message || 'failed';
}
