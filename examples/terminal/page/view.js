// View draws a Screen, and knows how many characters there is room for.

export class View {
  constructor(frame, rows) {
    this.frame = frame;
    this.element = rows;
    this.drawn = false;
  }

  // size is the columns and rows that fit.
  size() {
    const probe = document.createElement('span');
    probe.textContent = 'x'.repeat(100);
    this.element.append(probe);
    const { width } = probe.getBoundingClientRect();
    probe.remove();
    const room = getComputedStyle(this.frame);
    const across = this.frame.clientWidth - parseFloat(room.paddingLeft) - parseFloat(room.paddingRight);
    const down = this.frame.clientHeight - parseFloat(room.paddingTop) - parseFloat(room.paddingBottom);
    return { columns: Math.max(2, Math.floor(across * 100 / width)), rows: Math.max(2, Math.floor(down / 18)) };
  }

  // draw shows the screen with the next picture.
  draw(screen) {
    if (this.drawn) return;
    this.drawn = true;
    requestAnimationFrame(() => {
      this.drawn = false;
      const atEnd = this.frame.scrollTop + this.frame.clientHeight >= this.frame.scrollHeight - 20;
      const past = screen.past.map((row) => row.element ??= this.row(row, -1)); // these don't change any more
      const now = screen.grid.map((row, y) => this.row(row, screen.modes.cursor && y === screen.y ? Math.min(screen.x, screen.columns - 1) : -1));
      this.element.replaceChildren(...past, ...now);
      if (atEnd) this.frame.scrollTop = this.frame.scrollHeight;
    });
  }

  row(cells, cursor) {
    const element = document.createElement('div');
    for (let x = 0; x < cells.length;) {
      const { pen } = cells[x];
      let text = '';
      const from = x;
      do text += cells[x++].text; while (x < cells.length && cells[x].pen === pen && x !== cursor && from !== cursor);
      element.append(this.run(text, pen, from === cursor));
    }
    return element;
  }

  run(text, pen, cursor) {
    const names = ['bold', 'faint', 'italic', 'underline', 'strike'].filter((name) => pen[name]);
    if (cursor) names.push('cursor');
    let { fg, bg } = pen;
    if (pen.inverse) [fg, bg] = [bg ?? '#16181d', fg ?? '#d7dae0'];
    if (names.length === 0 && !fg && !bg) return document.createTextNode(text);
    const span = document.createElement('span');
    span.className = names.join(' ');
    if (!cursor && fg) span.style.color = fg;
    if (!cursor && bg) span.style.background = bg;
    span.textContent = text;
    return span;
  }
}
