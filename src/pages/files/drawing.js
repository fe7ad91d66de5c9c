// Draws a timeline, or two below each other: the steps of each, its ranks, their streams and waits, and above
// them the whole time.
import { median, number, state, t } from './kit.js';
import { ink, scaled, ticks } from './charts.js';

export const COLOURS = ['#4c8ddb', '#d1495b', '#c9a227', '#2a9d8f', '#e07b39', '#8e9fd6', '#a56cc1', '#b08968'];  // of work, by D.kinds
export const WAIT = { fill: 'Pipeline fills', drain: 'Pipeline drains', dependency: 'Waits for a neighbour stage',
  host: 'Waits for the host', device: 'Starts late on the device', queue: 'Launch queue is full',
  loader: 'Waits for the data loader', ranks: 'Waits for other ranks' };  // the kinds behind them are waits
const ROW = 24, LOW = 14, GROUP = 24, STRIP = 32, AXIS = 16;  // heights in pixels; LOW: a row of waits
export const SLOW = 1.2;  // a step this much longer than the median is slow
const FEW = 3;            // pixels; a slice at least this wide is drawn by itself, shorter ones as sums
export let D = null;
export const view = { from: 0, to: 1, marked: null };

// The places of all rows of this data.
export function prepare(data) {
  let y = AXIS;
  D = data;
  D.rows = [];
  D.span = D.runs.reduce((most, r) => Math.max(most, r.span), 1);
  D.runs.forEach((run, index) => {
    let group = null;
    run.y = y;
    run.title = D.runs.length > 1 && t(index ? 'after' : 'before');
    run.middle = median(run.steps.map(s => s[3]));
    y += STRIP;
    for (const row of run.rows) {
      const count = row.s.length / 4;
      row.begin = new Float64Array(count); row.end = new Float64Array(count); row.most = new Float64Array(count);
      let time = 0, most = 0;
      for (let i = 0; i < count; i++) {
        time += row.s[4 * i]; row.begin[i] = time; row.end[i] = time + row.s[4 * i + 1];
        most = Math.max(most, row.end[i]); row.most[i] = most;
      }
      row.run = index;
      row.waits = row.s[2] >= COLOURS.length;
      row.host = D.kinds[row.s[2]] === 'range';
      row.high = row.waits ? LOW : ROW;
      row.call = new Map();
      for (let i = 0; i < (row.c?.length || 0); i += 2) row.call.set(row.c[i], row.c[i + 1]);
      if (row.rank >= 0 && row.rank !== group) { row.head = y; y += GROUP; }
      group = row.rank;
      row.y = y;
      y += row.high;
      D.rows.push(row);
    }
    y += 8;
  });
  D.height = y;
}
// [row, index of the slice] of each part of a collective.
export const partsOf = (rows, call) => rows.flatMap(row => [...row.call].filter(([, c]) => c === call).map(([i]) => [row, i]));
export const colourOf = kind => COLOURS[kind] || '#868c96';  // grey: waits

// The first slice that may reach `time`: no earlier one ends behind it.
export function first(row, time) {
  let a = 0, b = row.most.length;
  while (a < b) { const m = (a + b) >> 1; if (row.most[m] <= time) a = m + 1; else b = m; }
  return a;
}

// Nanoseconds of each kind in each of `count` parts of [from, to], of slices shorter than `limit`.
export function parts(row, from, to, count, limit = Infinity) {
  const sums = D.kinds.map(() => new Float64Array(count + 1)), per = (to - from) / count;
  for (let i = first(row, from); i < row.begin.length && row.begin[i] < to; i++) {
    if (row.end[i] - row.begin[i] >= limit) continue;
    const b = (Math.max(row.begin[i], from) - from) / per, e = (Math.min(row.end[i], to) - from) / per,
      of = sums[row.s[4 * i + 2]];
    for (let p = Math.floor(b), last = Math.min(count, Math.ceil(e)); p < last; p++) of[p] += Math.min(e,
      p + 1) - Math.max(b, p);
  }
  return sums;
}

export const left = () => (innerWidth > 640 ? 184 : 88);

function bar(g, x, y, height, sums, p) {  // a pixel is filled as far as its time was
  let bottom = y + height;
  for (let kind = 0; kind < sums.length; kind++) {
    const tall = Math.min(1, sums[kind][p]) * height, top = Math.max(y, bottom - tall);
    if (tall <= 0) continue;
    g.fillStyle = colourOf(kind);
    g.fillRect(x, top, 1, bottom - top);
    bottom = top;
  }
}

// The name within a slice, as far as it fits.
function inscribe(g, text, x, width, y) {
  g.save(); g.beginPath(); g.rect(x, y, width - 4, ROW); g.clip();
  g.fillStyle = '#10131a'; g.fillText(text, x + 4, y + 13);
  g.restore();
}

function drawRow(g, row, X, room) {
  const { from, to } = view, L = left(), per = (to - from) / room, high = row.high - (row.waits ? 4 : 6);
  const sums = parts(row, from, to, Math.floor(room), FEW * per);
  for (let p = 0; p < room; p++) bar(g, L + p, row.y + 2, high, sums, p);
  for (let i = first(row, from); i < row.begin.length && row.begin[i] < to; i++) {
    if (row.end[i] - row.begin[i] < FEW * per || row.end[i] <= from) continue;
    const x = Math.max(L, X(row.begin[i])), width = Math.min(L + room, X(row.end[i])) - x;
    g.fillStyle = colourOf(row.s[4 * i + 2]);
    g.fillRect(x, row.y + 2, width > 8 ? width - 1 : width, high);
    if (width > 48 && row.s[4 * i + 3] >= 0) inscribe(g, nameOf(row, i), x, width, row.y + 2);
  }
}

// The steps of a run; the slow ones are marked.
function drawSteps(g, run, X, L, width, bottom) {
  const soft = ink('--soft');
  if (run.title) { g.fillStyle = ink('--text'); g.font = '600 14px system-ui, sans-serif'; g.fillText(run.title, 0,
    run.y + 24); g.font = '12px system-ui, sans-serif'; }
  for (const s of run.steps) {
    const x = X(s[1]), end = X(s[2]), slow = s[3] > SLOW * run.middle && run.steps.length > 2;
    if (end < L || x > width) continue;
    const begin = Math.max(L, x);
    g.fillStyle = slow ? ink('--flaky') : soft;
    if (x >= L && end - x > 8) g.fillRect(x, run.y + 8, 1, bottom - run.y - 8);
    g.fillRect(begin, run.y + 26, Math.max(1, Math.min(end, width) - begin - 1), slow ? 4 : 2);
    if (end - begin > 60) g.fillText(`${t('step')} ${s[0]}${slow ? ` · ${t('slow')}` : ''}`, begin + 4, run.y + 20);
  }
}

// The parts of the selected collective, linked from rank to rank.
function drawCall(g, X, L) {
  const [run, call] = state.get('call').split('.').map(Number);
  let last = null;
  g.strokeStyle = ink('--text'); g.lineWidth = 2;
  for (const [row, i] of partsOf(D.runs[run]?.rows || [], call)) {
    const x = Math.max(L, X(row.begin[i])), end = Math.max(x + 2, X(row.end[i]));
    g.strokeRect(x, row.y + 1, end - x, ROW - 4);
    if (last) { g.beginPath(); g.moveTo(...last); g.lineTo(x, row.y + 1); g.stroke(); }
    last = [x, row.y + ROW - 3];
  }
}

export function draw(canvas, overview) {
  const [g, width] = scaled(canvas, D.height), L = left(), room = width - L, { from, to } = view,
    X = ns => L + (ns - from) / (to - from) * room;
  const text = ink('--text'), soft = ink('--soft'), line = ink('--line');
  const unit = to - from >= 1e9 ? [1e9, 's'] : to - from >= 1e6 ? [1e6, 'ms'] : [1e3, 'µs'];
  for (const v of ticks(from / unit[0], to / unit[0], room / 90)) {
    const x = X(v * unit[0]);
    g.fillStyle = line; g.fillRect(x, 16, 1, D.height);
    g.fillStyle = soft; if (x < width - 48) g.fillText(`${number(v)} ${unit[1]}`, x + 4, 12);
  }
  for (const row of D.rows) {
    if (row.head !== undefined) { g.fillStyle = text; g.font = '600 12px system-ui, sans-serif';
      g.fillText(`${t('rank')} ${row.rank}`, 0, row.head + 18); g.font = '12px system-ui, sans-serif'; }
    g.fillStyle = soft; g.fillText(shortLabel(row), row.rank >= 0 ? 8 : 0, row.y + (row.waits ? 11 : 15), L - 16);
    drawRow(g, row, X, room);
  }
  D.runs.forEach((run, i) => drawSteps(g, run, X, L, width, D.runs[i + 1]?.y || D.height));
  if (state.get('call')) drawCall(g, X, L);
  if (view.marked) {
    const [a, b] = view.marked;
    g.fillStyle = `${ink('--accent')}33`;
    g.fillRect(Math.max(L, X(a)), 0, Math.min(width, X(b)) - Math.max(L, X(a)), D.height);
  }
  drawOverview(overview);
}

// The work of all ranks over the whole time of each run, and which part of it is drawn below.
function drawOverview(canvas) {
  const [g, width] = scaled(canvas, STRIP * D.runs.length), L = left(), room = Math.floor(width - L);
  if (D.overview?.room !== room) D.overview = { room, runs: D.runs.map(run => workOf(run, room)) };
  D.overview.runs.forEach((sums, i) => {
    g.fillStyle = ink('--soft');
    g.fillText(D.runs[i].title || t('Whole time'), 0, STRIP * i + 20);
    for (let p = 0; p < room; p++) bar(g, L + p, STRIP * i + 4, STRIP - 8, sums, p);
  });
  g.strokeStyle = ink('--accent'); g.lineWidth = 2;
  g.strokeRect(L + view.from / D.span * room + 1, 1, Math.max(2, (view.to - view.from) / D.span * room - 2),
    STRIP * D.runs.length - 2);
}
function workOf(run, room) {
  const each = run.rows.filter(r => !r.waits && !r.host).map(r => parts(r, 0, D.span, room));
  const all = COLOURS.map((_, k) => new Float64Array(room).map((_, p) => each.reduce((n, s) => n + s[k][p], 0)));
  const most = all[0].reduce((n, _, p) => Math.max(n, all.reduce((x, k) => x + k[p], 0)), 0) || 1;
  return all.map(k => k.map(v => v / most));
}
export function nameOf(row, i) {  // of a wait with a name: what the host did
  const kind = D.kinds[row.s[4 * i + 2]], name = D.runs[row.run].names[row.s[4 * i + 3]];
  return row.waits || !name ? [t(WAIT[kind] || kind), name].filter(Boolean).join(': ') : name;
}
const waitLabel = row => t(WAIT[D.kinds[row.s[2]]]).replace(innerWidth > 640 ? '' : /^Waits for (the|other|a) /, '');
export const shortLabel = row => (row.waits ? `${row.rank < 0 ? `${row.l} · ` : ''}${waitLabel(row)}`
  : innerWidth <= 640 && row.rank >= 0 ? row.l.split(' · ').at(-1) : row.l.replace(`rank ${row.rank} · `, ''));
