// Says what every client of the matrix says, and prints what it sees.
const { WebSocket } = require('ws');

const seen = [];
const socket = new WebSocket(process.argv[2], ['chat'], { perMessageDeflate: { threshold: 0 } });
const big = Buffer.alloc(70000, 'culvert ');
socket.on('open', () => {
  seen.push(socket.protocol, socket.extensions.includes('permessage-deflate') ? 'deflate' : 'plain');
  socket.send('grüße'); // the first frame
});
socket.on('pong', () => { seen.push('pong'); socket.send('close'); });
socket.on('message', (data, binary) => {
  if (!binary) { seen.push(`text ${data}`); socket.send(big); return; }
  seen.push(`binary ${data.length} ${data.equals(big)}`);
  socket.ping('?');
});
socket.on('error', (err) => seen.push(String(err)));
socket.on('close', (code, reason) => { seen.push(`closed ${code} ${reason}`); console.log(seen.join(', ')); });
