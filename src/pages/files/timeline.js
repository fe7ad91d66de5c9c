// The page of a timeline: answers first, then the drawing, ranks, steps, kernels and the whole report.
import { KEYS, at, code, el, empty, facts, fill, helpButton, inside, mark, number, percent, search, state, t, tiles,
  tip, views } from './kit.js';
import { Table, counted, plainTable } from './table.js';
import { bars, lines, ticks } from './charts.js';

const COLOURS = ['#4c8ddb', '#d1495b', '#c9a227', '#2a9d8f', '#e07b39', '#8e9fd6', '#a56cc1'];  // of D.kinds
const WAIT = { fill: 'Pipeline fills', drain: 'Pipeline drains', dependency: 'Waits for a neighbour stage',
  host: 'Waits for the host', device: 'Starts late on the device', queue: 'Launch queue is full' };
const ROW = 24, GROUP = 24, AXIS = 48, SLOW = 1.2;  // pixels; a step this much longer than the median is slow
let D = null, A = null;
const view = { from: 0, to: 1, marked: null };

function span(ns, digits = 4) {
  const [by, unit] = ns >= 1e9 ? [1e9, 's'] : ns >= 1e6 ? [1e6, 'ms'] : ns >= 1e3 ? [1e3, 'µs'] : [1, 'ns'];
  return `${number(+(ns / by).toPrecision(digits))} ${unit}`;
}
const share = (part, all) => (all > 0 ? `${(100 * part / all).toFixed(1)}%` : '–');
const median = list => [...list].sort((a, b) => a - b)[Math.floor(list.length / 2)] || 0;
const total = key => A.devices.reduce((n, d) => n + d.total[key], 0);
const stepLink = number_ => {
  const step = D.steps.find(s => s[0] === number_);
  return step ? state.link({ view: '', from: String(step[1]), to: String(step[2]) }) : null;
};

// ---- answers ----

function answers() {
  const list = [], all = total('span_ns'), link = (text, href) => (href ? el('a', { href }, text) : text);
  for (const c of A.culprits || []) {
    list.push([mark('fail'), ` ${c.name}: ${c.cause}${c.operation ? ` (${c.operation})` : ''}, `,
      link(t('{} a step longer than its peers, since step {}', span(c.excess_ns), c.since_step),
      stepLink(c.since_step))]);
  }
  const lengths = A.steps.map(s => s.length_ns), middle = median(lengths),
    slow = A.steps.filter(s => s.length_ns > SLOW * middle);
  if (slow.length && lengths.length > 2) list.push([mark('flaky'), ' ',
    t('{} of {} steps are more than 20% longer than the median: ', slow.length, lengths.length),
    slow.slice(0, 5).map((s, i) => [i ? ', ' : '', link(`${t('step')} ${s.number}`, stepLink(s.number))])]);
  for (const s of A.stragglers || []) {
    if (s.cost_others_ns > all / 100) list.push([mark('flaky'), ' ',
      t('Others wait {} for rank {} in collectives ({} of their time).', span(s.cost_others_ns), s.rank,
      share(s.cost_others_ns, all)), ' ', el('a', { href: `#rank=${s.rank}` }, t('Show'))]);
  }
  const loading = total('data_loader_ns'), causes = Object.keys(WAIT).map(c =>
    [c, A.devices.reduce((n, d) => n + d.total.idle_by_cause_ns[c], 0)]).sort((a, b) => b[1] - a[1]);
  if (loading > all / 100) list.push([mark('flaky'), ' ', t('GPUs wait {} of the time for the data loader.',
    share(loading, all))]);
  if (causes[0]?.[1] > all / 20) list.push([mark('known'), ' ', t('Largest cause of idle time: {} ({}).',
    t(WAIT[causes[0][0]]), share(causes[0][1], all)), ' ', el('a', { href: '#view=ranks' }, t('Show'))]);
  const exposed = total('communication_ns') - total('hidden_communication_ns');
  if (exposed > all / 20) list.push([mark('known'), ' ', t('Communication that no compute hides takes {}.',
    share(exposed, all)), ' ', el('a', { href: '#view=kernels&q=communication' }, t('Show'))]);
  return list;
}

function header() {
  const all = total('span_ns'), mean = A.steps.reduce((n, s) => n + s.length_ns, 0) / (A.steps.length || 1);
  const exposed = total('communication_ns') - total('hidden_communication_ns'), found = answers();
  const files = D.files.length > 3 ? [...D.files.slice(0, 3), t('and {} more', D.files.length - 3)] : D.files;
  fill(at('head'), el('div', { class: 'bar-top' },
    el('span', null, ['assay · timeline', ...files.map(f => f.split('/').slice(-1)[0])].join(' · ')), helpButton()),
    el('h1', null, A.steps.length > 0 && A.devices.length > 0 && t('{} a step', span(mean)), A.devices.length
      ? el('span', { class: 'soft' }, t('{} of GPU time computes', share(total('compute_ns'), all))) : mark('none',
      t('No GPU work'))),
    found.length > 0 && el('ul', { class: 'answers' }, found.map(f => el('li', null, f))),
    A.devices.length > 0 && tiles([[t('GPUs'), number(A.devices.length)], [t('Steps'), number(A.steps.length)],
      [t('Compute'), share(total('compute_ns'), all)], [t('Communication'), share(exposed, all), t('not hidden')],
      [t('Idle'), share(total('idle_ns'), all)], A.flops?.mfu && ['MFU', percent(A.flops.mfu, 1)],
        A.steps[0]?.schedule !== 'none' && A.steps[0] && [t('Schedule'), A.steps[0].schedule]]),
    (A.notes || []).map(n => el('p', { class: 'soft small' }, n)));
  document.title = `${at('head').querySelector('h1').textContent} · assay timeline`;
}

// ---- drawing ----

function prepare() {
  let group = null, y = AXIS;
  for (const row of D.rows) {
    const count = row.s.length / 4;
    row.begin = new Float64Array(count); row.end = new Float64Array(count); row.most = new Float64Array(count);
    let time = 0, most = 0;
    for (let i = 0; i < count; i++) {
      time += row.s[4 * i]; row.begin[i] = time; row.end[i] = time + row.s[4 * i + 1];
      most = Math.max(most, row.end[i]); row.most[i] = most;
    }
    if (row.rank >= 0 && row.rank !== group) { row.head = y; y += GROUP; }
    group = row.rank;
    row.y = y;
    y += ROW;
  }
  D.height = y + 8;
}

// The first slice that may reach `time`: no earlier one ends behind it.
function first(row, time) {
  let a = 0, b = row.most.length;
  while (a < b) { const m = (a + b) >> 1; if (row.most[m] <= time) a = m + 1; else b = m; }
  return a;
}

// Nanoseconds of each kind in each of `count` parts of [from, to].
function parts(row, from, to, count) {
  const sums = D.kinds.map(() => new Float64Array(count + 1)), per = (to - from) / count;
  for (let i = first(row, from); i < row.begin.length && row.begin[i] < to; i++) {
    const b = (Math.max(row.begin[i], from) - from) / per, e = (Math.min(row.end[i], to) - from) / per,
      of = sums[row.s[4 * i + 2]];
    for (let p = Math.floor(b), last = Math.min(count, Math.ceil(e)); p < last; p++) of[p] += Math.min(e,
      p + 1) - Math.max(b, p);
  }
  return sums;
}

function scaled(canvas, height) {
  const ratio = devicePixelRatio || 1, width = canvas.parentNode.clientWidth, g = canvas.getContext('2d');
  canvas.width = width * ratio; canvas.height = height * ratio;
  canvas.style.width = `${width}px`; canvas.style.height = `${height}px`;
  g.scale(ratio, ratio);
  g.font = '12px system-ui, sans-serif';
  return [g, width];
}
const ink = name => getComputedStyle(document.documentElement).getPropertyValue(name);
const left = () => (innerWidth > 640 ? 184 : 88);

function bar(g, x, y, height, sums, p) {  // a pixel is filled as far as its time was
  let bottom = y + height;
  for (let kind = 0; kind < sums.length; kind++) {
    const tall = Math.min(1, sums[kind][p]) * height, top = Math.max(y, bottom - tall);
    if (tall <= 0) continue;
    g.fillStyle = COLOURS[kind];
    g.fillRect(x, top, 1, bottom - top);
    bottom = top;
  }
}

function draw(canvas, minimap) {
  const [g, width] = scaled(canvas, D.height), L = left(), room = width - L, { from, to } = view,
    X = ns => L + (ns - from) / (to - from) * room;
  const text = ink('--text'), soft = ink('--soft'), line = ink('--line');
  const unit = to - from >= 1e9 ? [1e9, 's'] : to - from >= 1e6 ? [1e6, 'ms'] : [1e3, 'µs'];
  for (const v of ticks(from / unit[0], to / unit[0], room / 110)) {
    const x = X(v * unit[0]);
    g.fillStyle = line; g.fillRect(x, 16, 1, D.height);
    g.fillStyle = soft; g.fillText(`${number(v)} ${unit[1]}`, x + 4, 12);
  }
  for (const row of D.rows) {
    if (row.head !== undefined) { g.fillStyle = text; g.font = '600 12px system-ui, sans-serif';
      g.fillText(`${t('rank')} ${row.rank}`, 0, row.head + 18); g.font = '12px system-ui, sans-serif'; }
    g.fillStyle = soft; g.fillText(shortLabel(row), row.rank >= 0 ? 8 : 0, row.y + 15, L - 16);
    const sums = parts(row, from, to, Math.floor(room));
    for (let p = 0; p < room; p++) bar(g, L + p, row.y + 2, ROW - 6, sums, p);
  }
  const middle = median(A.steps.map(s => s.length_ns));
  D.steps.forEach((s, i) => {
    const x = X(s[1]), end = X(s[2]), slow = A.steps[i]?.length_ns > SLOW * middle && D.steps.length > 2;
    if (end < L || x > width) return;
    g.fillStyle = slow ? ink('--flaky') : soft;
    if (x >= L && end - x > 8) g.fillRect(x, 24, 1, D.height);
    g.fillRect(Math.max(L, x), 42, Math.max(1, Math.min(end, width) - Math.max(L, x) - 1), slow ? 4 : 2);
    if (end - Math.max(L, x) > 60) g.fillText(`${t('step')} ${s[0]}${slow ? ` · ${t('slow')}` : ''}`,
      Math.max(L, x) + 4, 36);
  });
  if (view.marked) {
    const [a, b] = view.marked;
    g.fillStyle = ink('--accent'); g.globalAlpha = .2;
      g.fillRect(Math.max(L, X(a)), 0, Math.min(width, X(b)) - Math.max(L, X(a)), D.height); g.globalAlpha = 1;
  }
  const [m, wide] = scaled(minimap, 32), per = D.rows.length || 1;
  if (!D.overview || D.overview.wide !== wide) D.overview = { wide, sums: D.rows.map(r => parts(r, 0, D.span, wide)) };
  for (let p = 0; p < wide; p++) {
    bar(m, p, 4, 24, D.kinds.map((_, k) => [D.overview.sums.reduce((n, s) => n + s[k][p], 0) / per]), 0);
  }
  m.strokeStyle = ink('--accent'); m.lineWidth = 2;
  m.strokeRect(from / D.span * wide + 1, 1, Math.max(2, (to - from) / D.span * wide - 2), 30);
}
const shortLabel = row => (innerWidth <= 640 && row.rank >= 0 ? row.l.split(' · ').at(-1) : row.rank >= 0
  ? row.l.replace(new RegExp(`^rank ${row.rank} · `), '') : row.l);

// Sums by kind of the marked time, over the rows.
function sums() {
  if (!view.marked) return [el('span', { class: 'soft' },
    t('Shift and drag marks a time and sums it up. Wheel or + −: zoom. Drag or ← →: move. 0: all.'))];
  const [a, b] = view.marked, all = D.kinds.map((_, k) => D.rows.reduce((n, r) => n + parts(r, a, b, 1)[k][0],
    0) * (b - a));
  return [el('b', null, span(b - a)), ...D.kinds.map((k, i) => all[i] > 0 && [' · ', el('span', { class: 'key' },
    `${t(k)} ${span(all[i])} (${share(all[i], (b - a) * D.rows.length)})`)]),
    ' · ', el('button', { class: 'plain', type: 'button', click: () => { move(...view.marked); } }, t('Zoom to it'))];
}

let redraw = () => {};
function move(from, to) {
  const width = Math.min(D.span, Math.max(100, to - from));
  view.from = Math.min(Math.max(0, from), D.span - width);
  view.to = view.from + width;
  state.set({ from: view.from > 0 || view.to < D.span ? String(Math.round(view.from)) : '', to: view.to < D.span
    || view.from > 0 ? String(Math.round(view.to)) : '' }, true);
  redraw();
}
const zoom = (by, x = (view.from + view.to) / 2) => move(x - (x - view.from) * by,
  x - (x - view.from) * by + (view.to - view.from) * by);

function nameAt(row, time, slack) {
  for (let i = first(row, time - slack); i < row.begin.length && row.begin[i] <= time + slack; i++) {
    if (row.end[i] < time - slack) continue;
    const name = row.s[4 * i + 3] < 0 ? t(D.kinds[row.s[4 * i + 2]]) : D.names[row.s[4 * i + 3]];
    return `${name}\n${span(row.end[i] - row.begin[i])}, ${t('from {} on', span(row.begin[i], 7))}`;
  }
  return '';
}

function timeline() {
  if (!D.rows.length) return [empty(t('No GPU work to draw'), t('The trace has no kernels, copies or pipeline jobs.'))];
  view.from = Math.min(Number(state.get('from')) || 0, D.span - 1);
  view.to = Math.min(Number(state.get('to')) || D.span, D.span);
  if (view.to <= view.from) view.to = D.span;
  const canvas = el('canvas'), minimap = el('canvas'), sum = el('p', { class: 'sums', 'aria-live': 'polite' });
  const timeAt = x => view.from + (x - left()) / (canvas.clientWidth - left()) * (view.to - view.from);
  let frame = 0;
  redraw = () => { cancelAnimationFrame(frame); frame = requestAnimationFrame(() => { if (!canvas.isConnected) return;
    draw(canvas, minimap); fill(sum, sums()); }); };
  let held = null;
  const down = event => { held = { x: event.offsetX, from: view.from, to: view.to, marks: event.shiftKey };
    canvas.setPointerCapture(event.pointerId); };
  const moved = event => {
    if (held?.marks) { view.marked = [timeAt(held.x), timeAt(event.offsetX)].sort((a, b) => a - b).map(v =>
      Math.min(D.span, Math.max(0, v))); return redraw(); }
    if (held) { const by = (held.x - event.offsetX) / (canvas.clientWidth - left()) * (held.to - held.from);
      return move(held.from + by, held.to + by); }
    const row = D.rows.find(r => event.offsetY >= r.y && event.offsetY < r.y + ROW),
      slack = (view.to - view.from) / canvas.clientWidth;
    tip(event, row && (event.offsetX < left() ? row.l : nameAt(row, timeAt(event.offsetX), slack)));
  };
  const up = () => { held = null; };
  canvas.addEventListener('pointerdown', down); canvas.addEventListener('pointermove', moved);
    canvas.addEventListener('pointerup', up);
  canvas.addEventListener('pointerleave', () => tip());
  canvas.addEventListener('dblclick', () => move(0, D.span));
  canvas.addEventListener('wheel', event => { event.preventDefault(); zoom(event.deltaY > 0 ? 1.25 : 0.8,
    timeAt(event.offsetX)); }, { passive: false });
  const there = event => { const x = event.offsetX / minimap.clientWidth * D.span, half = (view.to - view.from) / 2;
    move(x - half, x + half); };
  minimap.addEventListener('pointerdown', there); minimap.addEventListener('pointermove',
    event => { if (event.buttons) there(event); });
  const keys = event => {
    const width = view.to - view.from, by = { '+': () => zoom(0.7), '=': () => zoom(0.7), '-': () => zoom(1.4),
      w: () => zoom(0.7), s: () => zoom(1.4),
      ArrowLeft: () => move(view.from - width / 5, view.to - width / 5), a: () => move(view.from - width / 5,
        view.to - width / 5),
      ArrowRight: () => move(view.from + width / 5, view.to + width / 5), d: () => move(view.from + width / 5,
        view.to + width / 5), 0: () => move(0, D.span) }[event.key];
    if (by && !event.ctrlKey && !event.metaKey) { event.preventDefault(); by(); }
  };
  const used = D.kinds.map((k, i) => [k, i]).filter(([, i]) => D.rows.some(r => { for (let j = 2; j < r.s.length;
    j += 4) if (r.s[j] === i) return true; return false; }));
  const legend = el('div', { class: 'legend' }, used.map(([k, i]) => { const box = el('i');
    box.style.background = COLOURS[i]; box.style.height = '8px'; return el('span', null, box, t(k)); }));
  const host = el('div', { class: 'drawing', tabindex: '0', role: 'application',
    'aria-label': t('Timeline: + and − zoom, arrows move, 0 shows all'), keydown: keys }, minimap, canvas);
  new ResizeObserver(redraw).observe(host);
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => redraw());
  const rank = state.get('rank'), row = rank && D.rows.find(r => String(r.rank) === rank);
  if (row) requestAnimationFrame(() => scrollTo(0, canvas.getBoundingClientRect().top + scrollY + row.y - 96));
  return [legend, sum, host, D.pieces_ns > 0 && el('p', { class: 'soft' },
    t('The trace is large: the drawing shows sums over {}.', span(D.pieces_ns))),
    D.files.length > 0 && code(t('Open in Perfetto'), `assay timeline open ${D.files[0]}`)];
}

// ---- tables ----

function table(filters, rows, options) {
  const typing = document.activeElement?.matches?.('[data-search]'), made = new Table(options);
  fill(at('main'), el('div', { class: 'filters' }, filters, el('span', { class: 'count', role: 'status' },
    counted(rows.length))), made.element);
  if (typing) { const field = at('main').querySelector('[data-search]'); field.focus();
    field.setSelectionRange(field.value.length, field.value.length); }
  made.show(rows);
}

function ranks() {
  const of = (key, title) => ({ key, title, number: true, width: '112px', wide: true,
    value: d => d.total[key] / (d.total.span_ns || 1), cell: d => share(d.total[key], d.total.span_ns) });
  table([], A.devices, { label: t('GPUs'), id: d => d.label, columns: [
    { key: 'label', title: t('GPU'), value: d => d.label, cell: d => el('span', null, d.label,
      el('span', { class: 'under' },
      `${t('Compute')} ${share(d.total.compute_ns, d.total.span_ns)} · ${t('Idle')} ${share(d.total.idle_ns, d.total.span_ns)}`)) },
    of('compute_ns', t('Compute')), { ...of('communication_ns', t('Communication')) }, of('hidden_communication_ns',
      t('of it hidden')), of('memory_ns', t('Copies')), of('idle_ns', t('Idle')),
      of('data_loader_ns', t('Data loader'))],
  open: d => [el('h2', { class: 'minor' }, t('Idle time by cause')),
    bars(Object.entries(d.total.idle_by_cause_ns).filter(([, n]) => n > 0).sort((a, b) => b[1] - a[1]).map(([c, n]) =>
    [t(WAIT[c] || c), n, `${span(n)} · ${share(n, d.total.span_ns)}`])),
    el('h2', { class: 'minor' }, t('By step')), plainTable([t('Step'), t('Compute'), t('Communication'), t('Idle')],
      d.steps.slice(0, 200).map((s, i) => [String(A.steps[i]?.number ?? i), share(s.compute_ns, s.span_ns),
      share(s.communication_ns, s.span_ns), share(s.idle_ns, s.span_ns)]), [1, 2, 3])] });
}

function steps() {
  const middle = median(A.steps.map(s => s.length_ns));
  return [A.steps.length > 1 && lines({ title: t('Length of the steps'), x: { label: t('step'),
    ticks: A.steps.length < 12 ? A.steps.map(s => s.number) : undefined }, y: { format: v => span(v, 3) },
    base: middle, series: [{ name: t('length'), kind: 'accent', points: A.steps.map(s => [s.number, s.length_ns]) }] }),
    plainTable([t('Step'), t('Length'), t('To the median'), t('Limited by the host'), t('Schedule'), t('Bubble')],
      A.steps.slice(0, 1000).map(s => [el('a', { href: stepLink(s.number) }, String(s.number)), span(s.length_ns),
      s.length_ns > SLOW * middle && A.steps.length > 2 ? mark('flaky',
        `${(s.length_ns / middle).toFixed(2)}×`) : `${(s.length_ns / (middle || 1)).toFixed(2)}×`, s.launch_bound
        ? t('yes') : '', s.schedule === 'none' ? '' : s.schedule, s.schedule === 'none' ? '' : share(s.bubble, 1)]),
        [1, 2, 5])];
}

function kernels() {
  const wanted = state.get('q').toLowerCase(), rows = A.kernels.filter(k => !wanted
    || `${k.name} ${k.kind}`.toLowerCase().includes(wanted)), all = A.kernels.reduce((n, k) => n + k.total_ns, 0);
  const time = (key, title, wide = true) => ({ key, title, number: true, wide, width: '104px', value: k => k[key],
    cell: k => span(k[key]) });
  table([search('q', t('Kernel'))], rows, { label: t('Kernels'), id: k => k.name, columns: [
    { key: 'name', title: t('Kernel'), value: k => k.name, cell: k => el('span', { title: k.name }, k.name,
      el('span', { class: 'under' }, `${number(k.count)} × · ${span(k.total_ns)}`)) },
    { key: 'kind', title: t('Kind'), wide: true, width: '128px', value: k => k.kind, cell: k => t(k.kind) },
      { key: 'count', title: t('Calls'), number: true, wide: true, width: '80px', value: k => k.count,
      cell: k => number(k.count) },
    time('total_ns', t('Total')), { key: 'share', title: t('Share'), number: true, wide: true, width: '80px',
      value: k => k.total_ns, cell: k => share(k.total_ns, all) }, time('step_p50_ns', t('Step p50')),
      time('step_p99_ns', t('Step p99')), time('longest_ns', t('Longest'))],
  open: k => [code(t('Name'), k.name), facts([[t('Kind'), t(k.kind)], [t('Calls'), number(k.count)],
    [t('Mean'), span(k.total_ns / k.count)], [t('Longest'), span(k.longest_ns)], k.flop_per_call
    && ['FLOP', number(k.flop_per_call)], k.bytes_per_call && [t('Bytes'),
    number(k.bytes_per_call)]].filter(Boolean))] });
}

const report = () => [code('', D.report)];

function show() {
  header();
  const list = [['timeline', t('Timeline')], A.devices.length && ['ranks', t('GPUs'), A.devices.length], A.steps.length
    && ['steps', t('Steps'), A.steps.length], A.kernels?.length && ['kernels', t('Kernels'), A.kernels.length],
    ['report', t('Report')]].filter(Boolean);
  const now = views(list);
  Table.shown = null;
  if (now === 'ranks') ranks();
  else if (now === 'kernels') kernels();
  else fill(at('main'), { timeline, steps, report }[now]());
}

KEYS.push(['+  −', 'Zoom the timeline'], ['←  →', 'Move the timeline']);
addEventListener('hashchange', show);
inside(at('data')).then(data => {
  D = data;
  A = JSON.parse(at('analysis').textContent);
  prepare();
  show();
});
