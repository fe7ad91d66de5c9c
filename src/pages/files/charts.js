// Charts as SVG, with axes, units and a legend. Each is redrawn when its room changes.
import { at, el, number, t, tip } from './kit.js';

const svg = (tag, attributes, ...children) => {
  const made = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value !== null && value !== undefined && value !== false) made.setAttribute(name, value);
  }
  made.append(...children.flat(9).filter(c => c !== null && c !== undefined && c !== false));
  return made;
};

// Round numbers that divide [low, high] into about `count` steps.
export function ticks(low, high, count) {
  const raw = (high - low) / Math.max(1, count) || 1, power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].find(s => s * power >= raw * 0.999) * power, list = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9;
    ++i) list.push(+(i * step).toPrecision(12));
  return list;
}

export function short(value) {
  const size = Math.abs(value);
  if (size >= 1e9) return `${+(value / 1e9).toPrecision(3)}G`;
  if (size >= 1e6) return `${+(value / 1e6).toPrecision(3)}M`;
  if (size >= 1e4) return `${+(value / 1e3).toPrecision(3)}k`;
  return size > 0 && size < 1e-3 ? value.toExponential(1) : number(+value.toPrecision(4));
}

const timeTicks = (low, high, count) => {
  const minute = 60000, steps = [1, 2, 5, 10, 15, 30, 60, 120, 360, 720, 1440, 2880, 10080, 43200].map(m => m * minute);
  const step = steps.find(s => (high - low) / s <= count) || steps.at(-1), list = [];
  for (let at = Math.ceil(low / step) * step; at <= high; at += step) list.push(at);
  return list;
};
const timeText = (ms, span) => new Date(ms).toLocaleString('en-GB', span > 2 * 86400000
  ? { day: 'numeric', month: 'short' } : { hour: '2-digit', minute: '2-digit' });

function figure(title, legend, height, describe, draw) {
  const host = el('div'), many = legend.length > 1;
  const made = el('figure', null, el('figcaption', null, title,
    many && el('span', { class: 'legend' }, legend.map(([name, kind]) => el('span', null, el('i', { class: kind }),
      name)))), host);
  let last = 0;
  new ResizeObserver(() => {
    const width = host.clientWidth;
    if (!width || width === last) return;
    last = width;
    const picture = svg('svg', { width, height, viewBox: `0 0 ${width} ${height}`, role: 'img',
      'aria-label': describe });
    draw(picture, width);
    host.replaceChildren(picture);
  }).observe(host);
  return made;
}

const LEFT = 56, BOTTOM = 40, TOP = 12, RIGHT = 16;

// Axes with ticks, grid and units; gives the scales.
function axes(picture, width, height, x, y) {
  const X = v => LEFT + (v - x.low) / (x.high - x.low || 1) * (width - LEFT - RIGHT);
  const Y = v => height - BOTTOM - (v - y.low) / (y.high - y.low || 1) * (height - BOTTOM - TOP);
  for (const v of y.ticks || ticks(y.low, y.high, 4)) {
    picture.append(svg('line', { class: 'grid', x1: LEFT, x2: width - RIGHT, y1: Y(v), y2: Y(v) }),
      svg('text', { x: LEFT - 8, y: Y(v) + 4, 'text-anchor': 'end' }, (y.format || short)(v)));
  }
  const count = Math.max(2, Math.floor(width / 120));
  const marks = x.ticks || (x.time ? timeTicks(x.low, x.high, count) : ticks(x.low, x.high, count)
    .filter(Number.isInteger));
  for (const v of marks) {
    picture.append(svg('line', { class: 'axis', x1: X(v), x2: X(v), y1: height - BOTTOM, y2: height - BOTTOM + 4 }),
      svg('text', { x: X(v), y: height - BOTTOM + 18, 'text-anchor': X(v) > width - 40 ? 'end' : 'middle' },
        x.format ? x.format(v) : x.time ? timeText(v, x.high - x.low) : short(v)));
  }
  picture.append(svg('line', { class: 'axis', x1: LEFT, x2: width - RIGHT, y1: height - BOTTOM, y2: height - BOTTOM }),
    svg('text', { x: width - RIGHT, y: height - 6, 'text-anchor': 'end' }, x.label));
  return [X, Y];
}

// Lines. series: [{name, kind, points: [[x, y], …]}]; band: [low, high, name]; base: [value, name] of a dashed line.
// zero: the axis begins at 0; otherwise around the values.
export function lines({ title, series, x, y, zero = true, band, base, dots }) {
  const finite = series.flatMap(s => s.points).filter(p => Number.isFinite(p[1]));
  if (!finite.length) return null;
  const values = finite.map(p => p[1]).concat(band?.slice(0, 2) || [], base?.slice(0, 1) || []);
  const lowest = values.reduce((a, b) => Math.min(a, b)), highest = values.reduce((a, b) => Math.max(a, b));
  const pad = (highest - lowest || Math.abs(highest) || 1) * 0.08;
  const vertical = { ...y, low: zero ? Math.min(0, lowest) : lowest < 0 ? lowest - pad : Math.max(0, lowest - pad),
    high: y?.high ?? highest + pad };
  const across = finite.map(p => p[0]);
  const horizontal = { ...x, low: across.reduce((a, b) => Math.min(a, b)),
    high: across.reduce((a, b) => Math.max(a, b)) };
  if (horizontal.low === horizontal.high) { horizontal.low -= x.time ? 60000 : 1; horizontal.high += x.time
    ? 60000 : 1; }
  const height = 200, format = y?.format || short;
  const describe = `${typeof title === 'string' ? title : ''}: ${format(lowest)} – ${format(highest)}, ${finite.length}`;
  const legend = [...series.map(s => [s.name, s.kind]), band && [band[2], 'band'], base && [base[1], 'base']].filter(Boolean);
  return figure(title, legend, height, describe, (picture, width) => {
    const [X, Y] = axes(picture, width, height, horizontal, vertical);
    if (band) picture.append(svg('rect', { class: 'band', x: LEFT, width: width - LEFT - RIGHT, y: Y(band[1]),
      height: Math.max(1, Y(band[0]) - Y(band[1])) }));
    if (base) picture.append(svg('line', { class: 'base', x1: LEFT, x2: width - RIGHT, y1: Y(base[0]), y2: Y(base[0]) }));
    for (const one of series) {
      let path = '', pen = 'M';
      for (const [px, py] of one.points) {
        if (!Number.isFinite(py)) { pen = 'M'; continue; }
        path += `${pen}${X(px).toFixed(1)} ${Y(py).toFixed(1)}`;
        pen = 'L';
      }
      const round = dots || one.points.length < 40;
      picture.append(svg('g', { class: one.kind || 'accent' }, svg('path', { class: 'line', d: path }),
        round ? one.points.filter(p => Number.isFinite(p[1])).map(p => svg('circle', { class: 'dot', cx: X(p[0]),
          cy: Y(p[1]), r: 2.5 })) : []));
    }
    picture.addEventListener('pointermove', event => {
      const px = event.clientX - picture.getBoundingClientRect().left;
      const near = series.map(s => s.points.reduce((a, b) => (Math.abs(X(b[0]) - px) < Math.abs(X(a[0]) - px)
        ? b : a)));
      tip(event, [near[0][2] || (x.time ? timeText(near[0][0], 0) : `${x.label} ${short(near[0][0])}`),
        ...series.map((s, i) => `${s.name}: ${format(near[i][1])}`)].join('\n'));
    });
    picture.addEventListener('pointerleave', () => tip());
  });
}

// Counts of values in steps of a decade's third; the axis is logarithmic.
export function histogram({ title, values, unit }) {
  const logs = values.filter(v => v > 0).map(v => Math.floor(Math.log10(v) * 3));
  if (!logs.length) return null;
  const low = logs.reduce((a, b) => Math.min(a, b)), high = logs.reduce((a, b) => Math.max(a, b)) + 1;
  const counts = new Array(high - low).fill(0);
  for (const l of logs) ++counts[l - low];
  const most = counts.reduce((a, b) => Math.max(a, b)), height = 200;
  const decades = [];
  for (let d = Math.ceil(low / 3); d <= Math.floor(high / 3); ++d) decades.push(3 * d);
  return figure(title, [], height, `${title}: ${values.length}`, (picture, width) => {
    const [X, Y] = axes(picture, width, height, { low, high, label: unit, ticks: decades,
      format: v => short(10 ** (v / 3)) },
      { low: 0, high: most * 1.05 });
    counts.forEach((count, i) => {
      const box = svg('rect', { class: 'accent dot', x: X(low + i) + 1,
        width: Math.max(1, X(low + i + 1) - X(low + i) - 2),
        y: Y(count), height: Y(0) - Y(count) });
      box.addEventListener('pointermove',
        event => tip(event, `${short(10 ** ((low + i) / 3))} – ${short(10 ** ((low + i + 1) / 3))} ${unit}: ${number(count)}`));
      box.addEventListener('pointerleave', () => tip());
      picture.append(box);
    });
  });
}

// Ratios with their intervals, on a logarithmic axis from 1/4 to 4: [{ratio: [low, middle, high], speed, told, case}, …].
export function ratios(title, rows, over) {
  const log = v => Math.log2(Math.min(4, Math.max(0.25, v))), height = 240;
  const kind = row => ({ slow: 'fail', fast: 'pass' })[row.speed] || 'known';
  const legend = [[t('slow'), 'fail'], [t('fast'), 'pass'], [t('same'), 'known']];
  return figure(title, legend, height, `${title}: ${rows.length}`, (picture, width) => {
    const [X, Y] = axes(picture, width, height, { low: 0, high: rows.length, label: over, ticks: [] },
      { low: -2, high: 2, ticks: [-2, -1, 0, 1, 2], format: v => `${2 ** v}×` });
    rows.forEach((row, i) => {
      const [low, middle, high] = row.ratio, x = X(i + 0.5);
      const part = svg('g', { class: `${kind(row)} ${row.speed || ''}` },
        svg('line', { class: 'line', x1: x, x2: x, y1: Y(log(low)), y2: Y(log(high)) }),
        svg('circle', { class: 'dot', cx: x, cy: Y(log(middle)), r: 2.5 }));
      part.addEventListener('pointermove', event => tip(event, `${row.case}\n${row.what}: ${row.told}`));
      part.addEventListener('pointerleave', () => tip());
      picture.append(part);
    });
  });
}

// Horizontal bars of [name, value, text].
export function bars(rows) {
  const most = rows.reduce((m, r) => Math.max(m, r[1]), 0) || 1;
  return el('ul', { class: 'bars' }, rows.map(([name, value, text]) => {
    const bar = el('span', { class: 'length', 'aria-hidden': 'true' });
    bar.style.width = `${100 * value / most}%`;
    return el('li', null, el('span', { class: 'name', title: name }, name), bar, el('span', { class: 'number' }, text));
  }));
}

// Numbers by row and column; the larger, the darker. rows: [[name, …leading cells], [numbers]].
export function heat(heads, rows, format) {
  const most = rows.reduce((m, [, cells]) => Math.max(m, ...cells), 0) || 1, lead = rows.length ? rows[0][0].length : 1;
  const shade = value => `color-mix(in srgb, var(--accent) ${Math.round(45 * (value / most) ** 0.4)}%, transparent)`;
  const cell = (value, at) => {
    const made = el('td', null, format(value));
    if (value > 0 && at >= 0) made.style.background = shade(value);
    return made;
  };
  return el('div', { class: 'scroll', tabindex: '0', role: 'group', 'aria-label': heads.join(', ') },
    el('table', { class: 'heat' },
    el('thead', null, el('tr', null, heads.map(h => el('th', { scope: 'col' }, h)))),
    el('tbody', null, rows.map(([names, cells]) => el('tr', null, el('th', { scope: 'row' }, names[0]),
      names.slice(1, lead).map(n => el('td', null, n)), cells.map(cell))))));
}

// A canvas as wide as its parent, in pixels of the screen: what draws on it, and the width. `ink`: a colour of the page.
export function scaled(canvas, height) {
  const ratio = devicePixelRatio || 1, width = canvas.parentNode.clientWidth, g = canvas.getContext('2d');
  canvas.width = width * ratio; canvas.height = height * ratio;
  canvas.style.width = `${width}px`; canvas.style.height = `${height}px`;
  g.scale(ratio, ratio);
  g.font = '12px system-ui, sans-serif';
  return [g, width];
}
export const ink = name => getComputedStyle(document.documentElement).getPropertyValue(name);
