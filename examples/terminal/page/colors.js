// The 256 colours of a terminal, as CSS has them.

const named = [
  '#1c1f26', '#e0646c', '#8cc570', '#e0b15e', '#5ea2ef', '#c47fe0', '#4fb9c4', '#c8ccd4',
  '#5a6070', '#ff7b85', '#a5e085', '#ffd080', '#80bfff', '#e09fff', '#70dbe6', '#ffffff',
];

// color returns the CSS colour of a number from 0 to 255.
export function color(n) {
  if (n < 16) return named[n];
  if (n >= 232) {
    const grey = 8 + 10 * (n - 232);
    return `rgb(${grey},${grey},${grey})`;
  }
  const level = (x) => (x === 0 ? 0 : 55 + 40 * x);
  n -= 16;
  return `rgb(${level(Math.floor(n / 36))},${level(Math.floor(n / 6) % 6)},${level(n % 6)})`;
}

// rendition returns the pen that the parameters of "select graphic rendition" make of one.
export function rendition(pen, parameters) {
  pen = { ...pen };
  for (let i = 0; i < parameters.length; i++) {
    const p = parameters[i];
    if (p === 0) pen = {};
    else if (p === 1) pen.bold = true;
    else if (p === 2) pen.faint = true;
    else if (p === 3) pen.italic = true;
    else if (p === 4) pen.underline = true;
    else if (p === 7) pen.inverse = true;
    else if (p === 9) pen.strike = true;
    else if (p === 22) pen.bold = pen.faint = false;
    else if (p === 23) pen.italic = false;
    else if (p === 24) pen.underline = false;
    else if (p === 27) pen.inverse = false;
    else if (p === 29) pen.strike = false;
    else if (p >= 30 && p <= 37) pen.fg = color(p - 30);
    else if (p >= 90 && p <= 97) pen.fg = color(p - 82);
    else if (p >= 40 && p <= 47) pen.bg = color(p - 40);
    else if (p >= 100 && p <= 107) pen.bg = color(p - 92);
    else if (p === 39) pen.fg = undefined;
    else if (p === 49) pen.bg = undefined;
    else if (p === 38 || p === 48) {
      const side = p === 38 ? 'fg' : 'bg';
      if (parameters[i + 1] === 5) pen[side] = color(parameters[i += 2] & 255);
      else if (parameters[i + 1] === 2) pen[side] = `rgb(${parameters.slice(i + 2, i += 4).concat(parameters[i]).join()})`;
    }
  }
  return pen;
}
