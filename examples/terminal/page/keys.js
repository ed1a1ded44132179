// What keys send to a program, as xterm has it.

const letters = { ArrowUp: 'A', ArrowDown: 'B', ArrowRight: 'C', ArrowLeft: 'D', Home: 'H', End: 'F' };
const tildes = { Insert: 2, Delete: 3, PageUp: 5, PageDown: 6, F5: 15, F6: 17, F7: 18, F8: 19, F9: 20, F10: 21, F11: 23, F12: 24 };
const functions = { F1: 'P', F2: 'Q', F3: 'R', F4: 'S' };
const plain = { Enter: '\r', Backspace: '\x7f', Tab: '\t', Escape: '\x1b' };

// bytesOf returns what a keydown sends, undefined if it is text for the input event.
export function bytesOf(event, application) {
  const { key } = event;
  const modifiers = 1 + (event.shiftKey ? 1 : 0) + (event.altKey ? 2 : 0) + (event.ctrlKey ? 4 : 0);
  if (key === 'Tab' && event.shiftKey) return '\x1b[Z';
  if (plain[key]) return (event.altKey ? '\x1b' : '') + plain[key];
  if (letters[key]) {
    if (modifiers > 1) return `\x1b[1;${modifiers}${letters[key]}`;
    return (application ? '\x1bO' : '\x1b[') + letters[key];
  }
  if (functions[key]) return modifiers > 1 ? `\x1b[1;${modifiers}${functions[key]}` : `\x1bO${functions[key]}`;
  if (tildes[key]) return modifiers > 1 ? `\x1b[${tildes[key]};${modifiers}~` : `\x1b[${tildes[key]}~`;
  if (key.length !== 1) return undefined;
  if (event.ctrlKey && !event.metaKey) {
    if (event.shiftKey && (key === 'C' || key === 'V')) return undefined; // copy and paste
    const code = key.toUpperCase().charCodeAt(0);
    if (code >= 64 && code < 96) return (event.altKey ? '\x1b' : '') + String.fromCharCode(code & 31);
    if (key === ' ') return '\0';
    return undefined;
  }
  if (event.altKey && !event.metaKey) return `\x1b${key}`;
  return undefined;
}
