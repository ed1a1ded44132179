// Screen is what a terminal shows: it interprets what programs send to xterm, as far as
// shells, editors and pagers need it.

import { rendition } from './colors.js';

const wide = /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|[\u{1f300}-\u{1faff}]/u;
const combining = /^\p{M}$/u;
const lines = { j: '┘', k: '┐', l: '┌', m: '└', n: '┼', q: '─', t: '├', u: '┤', v: '┴', w: '┬', x: '│' };
const none = Object.freeze({});
const history = 2000; // rows that have left the screen

export class Screen {
  // reply is called with the response to a query of the program, as a string.
  constructor(columns, rows, reply = () => {}) {
    this.columns = columns;
    this.rows = rows;
    this.reply = reply;
    this.reset();
  }

  reset() {
    this.past = [];
    this.pen = {};
    this.grid = this.blank();
    this.x = this.y = 0;
    this.top = 0;
    this.bottom = this.rows - 1;
    this.modes = { cursor: true, wrap: true };
    this.drawing = false; // letters are lines
    this.saved = { x: 0, y: 0, pen: {} };
    this.other = null; // the grid that the alternate screen hides
    this.parse = this.plain;
  }

  blank() { return Array.from({ length: this.rows }, () => this.blankRow()); }
  blankRow() { return Array.from({ length: this.columns }, () => this.blankCell()); }
  blankCell() { return { text: ' ', pen: this.pen.bg ? { bg: this.pen.bg } : none }; }

  write(text) {
    for (const c of text) this.parse(c);
  }

  // resize keeps the content of the rows, and the cursor on its line.
  resize(columns, rows) {
    const fit = (grid) => {
      for (const row of grid) {
        while (row.length < columns) row.push({ text: ' ', pen: none });
        row.length = columns;
      }
      while (grid.length > rows) {
        if (grid === this.grid && this.y === grid.length - 1) {
          const gone = grid.shift();
          if (!this.other) this.keep(gone);
          this.y--;
        } else grid.pop();
      }
      this.columns = columns;
      while (grid.length < rows) grid.push(this.blankRow());
    };
    fit(this.grid);
    if (this.other) fit(this.other.grid);
    this.rows = rows;
    this.top = 0;
    this.bottom = rows - 1;
    this.move(this.x, this.y);
  }

  keep(row) {
    this.past.push(row);
    if (this.past.length > history) this.past.shift();
  }

  move(x, y) {
    this.x = Math.max(0, Math.min(this.columns - 1, x));
    this.y = Math.max(0, Math.min(this.rows - 1, y));
  }

  // plain handles a character outside of sequences.
  plain(c) {
    switch (c) {
      case '\x1b': this.parse = this.escape; break;
      case '\r': this.x = 0; break;
      case '\n': case '\v': case '\f': this.index(); break;
      case '\b': this.move(Math.min(this.x, this.columns - 1) - 1, this.y); break;
      case '\t': this.move((Math.floor(this.x / 8) + 1) * 8, this.y); break;
      default: if (c >= ' ' && c !== '\x7f') this.print(c);
    }
  }

  print(c) {
    if (combining.test(c)) {
      const cell = this.grid[this.y][Math.max(0, this.x - 1)];
      cell.text += c;
      return;
    }
    const width = wide.test(c) ? 2 : 1;
    if (this.x + width > this.columns) { // the cursor waits behind the last column
      if (this.modes.wrap) { this.x = 0; this.index(); } else this.x = this.columns - width;
    }
    const row = this.grid[this.y];
    row[this.x] = { text: this.drawing && lines[c] || c, pen: this.pen };
    if (width === 2 && this.x + 1 < this.columns) row[this.x + 1] = { text: '', pen: this.pen };
    this.x += width;
  }

  // index goes down a row, and scrolls at the last one.
  index() {
    if (this.y === this.bottom) this.scroll(1); else this.move(this.x, this.y + 1);
  }

  reverseIndex() {
    if (this.y === this.top) this.scroll(-1); else this.move(this.x, this.y - 1);
  }

  // scroll moves the rows of the region up, or down if n is negative.
  scroll(n, from = this.top) {
    for (; n > 0; n--) {
      const [gone] = this.grid.splice(from, 1);
      if (from === 0 && this.top === 0 && !this.other) this.keep(gone);
      this.grid.splice(this.bottom, 0, this.blankRow());
    }
    for (; n < 0; n++) {
      this.grid.splice(this.bottom, 1);
      this.grid.splice(from, 0, this.blankRow());
    }
  }

  escape(c) {
    if (c < ' ' && c !== '\x1b') { this.plain(c); return; } // controls work inside sequences
    this.parse = c === '\x1b' ? this.escape : this.plain;
    switch (c) {
      case '[': this.sequence = ''; this.parse = this.control; break;
      case ']': case 'P': case '_': case '^': this.parse = this.string; break;
      case '(': this.parse = this.charset; break;
      case ')': case '*': case '+': case '#': case '%': this.parse = this.skip; break;
      case '7': this.save(); break;
      case '8': this.restore(); break;
      case 'D': this.index(); break;
      case 'E': this.x = 0; this.index(); break;
      case 'M': this.reverseIndex(); break;
      case 'c': this.reset(); break;
    }
  }

  skip() { this.parse = this.plain; }
  charset(c) { this.drawing = c === '0'; this.parse = this.plain; }
  save() { this.saved = { x: this.x, y: this.y, pen: this.pen }; }
  restore() { this.pen = this.saved.pen; this.move(this.saved.x, this.saved.y); }

  // string skips a title and the like, which are not shown, up to its end.
  string(c) {
    if (c === '\x07') this.parse = this.plain;
    else if (c === '\x1b') this.parse = this.skip; // the backslash
  }

  control(c) {
    if (c < '@' || c > '~') {
      if (c === '\x1b') this.parse = this.escape;
      else if (c < ' ') this.plain(c);
      else if (this.sequence.length < 256) this.sequence += c;
      return;
    }
    this.parse = this.plain;
    const marked = /^[?<=>]/.exec(this.sequence);
    const numbers = this.sequence.slice(marked ? 1 : 0).split(/[;:]/).map((n) => parseInt(n, 10) || 0);
    if (marked) this.privately(marked[0], c, numbers); else this.command(c, numbers);
  }

  command(c, p) {
    const n = Math.min(Math.max(1, p[0]), 10000);
    const x = Math.min(this.x, this.columns - 1);
    switch (c) {
      case 'A': this.move(x, this.y - n); break;
      case 'B': case 'e': this.move(x, this.y + n); break;
      case 'C': case 'a': this.move(x + n, this.y); break;
      case 'D': this.move(x - n, this.y); break;
      case 'E': this.move(0, this.y + n); break;
      case 'F': this.move(0, this.y - n); break;
      case 'G': case '`': this.move(n - 1, this.y); break;
      case 'd': this.move(x, n - 1); break;
      case 'H': case 'f': this.move(Math.max(1, p[1] || 1) - 1, n - 1); break;
      case 'J': this.erase(p[0]); break;
      case 'K': this.eraseRow(p[0]); break;
      case 'L': if (this.inRegion()) this.scroll(-Math.min(n, this.rows), this.y); break;
      case 'M': if (this.inRegion()) this.scroll(Math.min(n, this.rows), this.y); break;
      case 'S': this.scroll(Math.min(n, this.rows)); break;
      case 'T': this.scroll(-Math.min(n, this.rows)); break;
      case '@': this.shift(x, Math.min(n, this.columns - x), 0); break;
      case 'P': this.shift(x, 0, Math.min(n, this.columns - x)); break;
      case 'X': this.fill(this.y, x, Math.min(this.columns, x + n)); break;
      case 'm': this.pen = rendition(this.pen, p); break;
      case 'r': this.region(p[0] || 1, p[1] || this.rows); break;
      case 's': this.save(); break;
      case 'u': this.restore(); break;
      case 'n': if (p[0] === 6) this.reply(`\x1b[${this.y + 1};${x + 1}R`); else if (p[0] === 5) this.reply('\x1b[0n'); break;
      case 'c': this.reply('\x1b[?6c'); break;
    }
  }

  inRegion() { return this.y >= this.top && this.y <= this.bottom; }

  region(top, bottom) {
    if (top >= bottom || bottom > this.rows) return;
    this.top = top - 1;
    this.bottom = bottom - 1;
    this.move(0, 0);
  }

  fill(y, from, to) {
    for (let x = from; x < to; x++) this.grid[y][x] = this.blankCell();
  }

  shift(x, inserted, removed) {
    const row = this.grid[this.y];
    row.splice(x, removed, ...Array.from({ length: inserted }, () => this.blankCell()));
    while (row.length < this.columns) row.push(this.blankCell());
    row.length = this.columns;
  }

  eraseRow(how) {
    const x = Math.min(this.x, this.columns - 1);
    this.fill(this.y, how ? 0 : x, how === 1 ? x + 1 : this.columns);
  }

  erase(how) {
    if (how === 3) { this.past = []; return; }
    if (how !== 2) this.eraseRow(how);
    for (let y = how === 0 ? this.y + 1 : 0; y < (how === 1 ? this.y : this.rows); y++) this.fill(y, 0, this.columns);
  }

  // privately switches DEC's modes.
  privately(mark, c, p) {
    if (mark !== '?' || (c !== 'h' && c !== 'l')) return;
    const on = c === 'h';
    for (const mode of p) {
      switch (mode) {
        case 1: this.modes.application = on; break;
        case 7: this.modes.wrap = on; break;
        case 25: this.modes.cursor = on; break;
        case 2004: this.modes.bracketed = on; break;
        case 47: case 1047: case 1049: this.alternate(on); break;
      }
    }
  }

  alternate(on) {
    if (on && !this.other) {
      this.other = { grid: this.grid, x: this.x, y: this.y, pen: this.pen };
      this.pen = {};
      this.grid = this.blank();
    } else if (!on && this.other) {
      const { grid, x, y, pen } = this.other;
      this.other = null;
      this.grid = grid;
      this.pen = pen;
      this.move(x, y);
    }
    this.top = 0;
    this.bottom = this.rows - 1;
  }
}
