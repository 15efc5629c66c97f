// Charts, drawn here from numbers. Each has a table beside it, which screen readers read instead.
import { $, h } from './dom.js';

const SVG = 'http://www.w3.org/2000/svg';

function s(tag, attributes, ...children) {
  const el = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) el.setAttribute(name, String(value));
  el.append(...children);
  return el;
}

// round is the end of an axis: 1, 2 or 5 times a power of ten.
function round(most) {
  if (most <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(most));
  return [1, 2, 5, 10].map((n) => n * power).find((n) => n >= most) || most;
}

// columns draws one column for each {label, value}; words says a value.
export function columns(title, data, words) {
  // Drawn as wide as it is shown, so that words have the size of words.
  const width = Math.min(Math.max($('content').clientWidth - 34, 280), 1400);
  const [height, left, bottom] = [width < 500 ? 170 : 230, 58, 24];
  const top = round(Math.max(...data.map((d) => d.value), 0));
  const room = height - bottom - 10;
  const step = (width - left) / Math.max(data.length, 1);
  const y = (value) => 10 + room * (1 - value / top);
  const every = Math.ceil(data.length / Math.max(2, Math.floor(width / 110)));
  const grid = [0, 0.5, 1].map((f) => s('g', { class: 'grid' },
    s('line', { x1: left, x2: width, y1: y(top * f), y2: y(top * f) }), s('text', { x: left - 8, y: y(top * f) + 4, 'text-anchor': 'end' }, words(top * f))));
  const bars = data.map((d, i) => s('g', { class: 'column' },
    s('rect', { class: 'hit', x: left + i * step, y: 10, width: step, height: room }),
    s('rect', { class: 'bar-fill', x: left + i * step + step * 0.14, y: y(d.value), width: step * 0.72, height: Math.max(room - (y(d.value) - 10), d.value > 0 ? 1.5 : 0), rx: Math.min(3, step * 0.2) }),
    s('title', {}, `${d.label}: ${words(d.value)}`)));
  const labels = data.map((d, i) => (i % every ? null : s('text', { class: 'axis', x: left + (i + 0.5) * step, y: height - 4, 'text-anchor': 'middle' }, d.short || d.label))).filter(Boolean);
  return h('figure', { class: 'chart' }, h('figcaption', {}, title), s('svg', { viewBox: `0 0 ${width} ${height}`, 'aria-hidden': 'true' }, ...grid, ...bars, ...labels));
}

// share draws how much of a limit is used; plain leaves out the colours that warn.
export function share(used, limit, plain = false) {
  const part = limit > 0 ? Math.min(used / limit, 1) : 0;
  const tone = plain ? '' : part >= 1 ? 'full' : part >= 0.75 ? 'near' : '';
  return s('svg', { class: `share ${tone}`, viewBox: '0 0 200 10', preserveAspectRatio: 'none', 'aria-hidden': 'true' },
    s('rect', { class: 'track', width: 200, height: 10 }), s('rect', { class: 'bar-fill', width: Math.max(200 * part, part > 0 ? 4 : 0), height: 10 }));
}
