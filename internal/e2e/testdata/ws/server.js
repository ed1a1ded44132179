// Echoes each message, and closes when it receives "close".
const { WebSocketServer } = require('ws');

const server = new WebSocketServer({
  host: '127.0.0.1', port: 0, perMessageDeflate: { threshold: 0 },
  handleProtocols: (offered) => (offered.has('chat') ? 'chat' : false),
});
server.on('listening', () => console.log(`127.0.0.1:${server.address().port}`));
server.on('connection', (socket) => socket.on('message', (data, binary) => {
  if (!binary && data.toString() === 'close') socket.close(4002, 'bye');
  else socket.send(data, { binary });
}));
process.stdin.on('end', () => process.exit()).resume();
