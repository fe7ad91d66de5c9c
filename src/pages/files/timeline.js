// The page of a timeline, or of two: answers first, then the drawing, ranks, steps, kernels and the whole report.
import { KEYS, answerList, at, chips, code, el, empty, facts, fill, header, inside, mark, median, number, percent, search, share,
  signed, span, state, t, tip, views } from './kit.js';
import { Table, listed, plainTable } from './table.js';
import { bars, lines } from './charts.js';
import { COLOURS, D, SLOW, WAIT, colourOf, draw, first, left, nameOf, parts, partsOf, prepare, shortLabel,
  view } from './drawing.js';

let A = null;

// The steps of a culprit: numbers are values, so a word list has few texts.
const when = text => t(text.replace(/\d+/g, '{}'), ...(text.match(/\d+/g) || []));
const total = key => A.devices.reduce((n, d) => n + d.total[key], 0);
const stepLink = number_ => {
  const step = D.runs[0].steps.find(s => s[0] === number_);
  return step ? state.link({ view: '', from: String(step[1]), to: String(step[2]) }) : null;
};

// The first and the last time of a collective's parts.
function timesOf(run, call) {
  const times = partsOf(D.runs[run].rows, call).map(([row, i]) => [row.begin[i], row.end[i]]);
  return [Math.min(...times.map(x => x[0])), Math.max(...times.map(x => x[1]))];
}

// The address of the collective in which others waited longest for a rank.
function longestFor(rank) {
  const best = D.runs[0].calls.map((c, i) => [c, i]).filter(([c]) => c[3] === rank)
    .sort((a, b) => b[0][4] - a[0][4])[0];
  if (!best) return `#rank=${rank}`;
  const [from, to] = timesOf(0, best[1]);
  return `#call=0.${best[1]}&rank=${rank}&from=${Math.max(0, from - (to - from))}&to=${to + (to - from)}`;
}

// ---- answers ----

function answers() {
  const list = [], all = total('span_ns'), link = (text, href) => (href ? el('a', { href }, text) : text);
  for (const c of A.culprits || []) {
    list.push([mark('fail'), ` ${c.name}: ${c.cause}${c.operation && !c.cause.includes(c.operation) ? ` (${c.operation})` : ''}, `,
      link(t('{} a step longer than its peers, {}', span(c.excess_ns), when(c.when)), stepLink(c.since_step))]);
  }
  const lengths = A.steps.map(s => s.length_ns), middle = median(lengths),
    slow = A.steps.filter(s => s.length_ns > SLOW * middle);
  if (slow.length && lengths.length > 2) list.push([mark('flaky'), ' ',
    t('{} of {} steps are more than 20% longer than the median: ', slow.length, lengths.length),
    slow.slice(0, 5).map((s, i) => [i ? ', ' : '', link(`${t('step')} ${s.number}`, stepLink(s.number))])]);
  const each = all / (A.devices.length || 1);  // the cost is what each of the others waits
  for (const s of A.stragglers || []) {
    if (s.cost_others_ns > each / 100) list.push([mark('flaky'), ' ',
      t('Others wait {} each for rank {} in collectives ({} of their time).', span(s.cost_others_ns), s.rank,
      share(s.cost_others_ns, each)), ' ', el('a', { href: longestFor(s.rank) }, t('Show'))]);
  }
  const loading = total('data_loader_ns'), causes = Object.keys(A.devices[0]?.total.idle_by_cause_ns || {}).map(c =>
    [c, A.devices.reduce((n, d) => n + d.total.idle_by_cause_ns[c], 0)]).sort((a, b) => b[1] - a[1]);
  if (loading > all / 100) list.push([mark('flaky'), ' ', t('GPUs wait {} of the time for the data loader.',
    share(loading, all))]);
  if (causes[0]?.[1] > all / 20) list.push([mark('known'), ' ', t('Largest cause of idle time: {} ({}).',
    t(WAIT[causes[0][0]]), share(causes[0][1], all)), ' ', el('a', { href: '#view=ranks' }, t('Show'))]);
  const exposed = total('communication_ns') - total('hidden_communication_ns');
  if (exposed > all / 20) list.push([mark('known'), ' ', t('Communication that no compute hides takes {}.',
    share(exposed, all)), ' ', el('a', { href: '#view=kernels&q=communication' }, t('Show'))]);
  if (!list.length && A.devices.length) list.push([mark('pass'), ' ', t('Nothing stands out: no slow device, no straggler, no long wait.')]);
  return list;
}

function head() {
  const all = total('span_ns'), mean = A.steps.reduce((n, s) => n + s.length_ns, 0) / (A.steps.length || 1);
  const exposed = total('communication_ns') - total('hidden_communication_ns'), found = answers();
  header({ where: ['assay · timeline', fileNames(D.runs[0])].join(' · '),
    verdict: [A.steps.length > 0 && A.devices.length > 0 && t('{} a step', span(mean)), A.devices.length ? el('span',
      { class: 'soft' }, t('{} of GPU time computes', share(total('compute_ns'), all))) : mark('none', t('No GPU work'))],
    above: answerList(found),
    numbers: A.devices.length ? [[t('GPUs'), number(A.devices.length)], [t('Steps'), number(A.steps.length)],
      [t('Compute'), share(total('compute_ns'), all)], [t('Communication'), share(exposed, all), t('not hidden')],
      total('memory_ns') > all / 100 && [t('Copies'), share(total('memory_ns'), all)],
      [t('Idle'), share(total('idle_ns'), all)], A.flops?.mfu && ['MFU', percent(A.flops.mfu, 1)],
        A.steps[0]?.schedule !== 'none' && A.steps[0] && [t('Schedule'), A.steps[0].schedule]] : [] });
}
function fileNames({ files }) {
  const depth = D.runs.length > 1 ? -2 : -1, names = files.slice(0, depth === -1 ? 3 : 1).map(f => f.split('/').slice(depth)
    .join('/'));
  return [...names, files.length > names.length && t('and {} more', files.length - names.length)].filter(Boolean).join(' · ');
}

// ---- two runs ----

const grows = r => (r.after ?? 0) - (r.before ?? 0);
function changeOf(r, unit) {
  if (r.before === null || r.after === null) return r.after === null ? mark('known', t('gone')) : mark('new', t('new'));
  const by = 100 * grows(r) / r.before;
  return Math.abs(by) < 1 || !r.before ? signed(grows(r), 3) : mark(!/ms/.test(unit) ? 'known' : by > 0 ? 'new' : 'pass',
    `${signed(by, 1)}%`);
}

function twoHead() {
  const { step } = A, found = [], kind = { slower: 'new', faster: 'pass' }[step.verdict] || 'known';
  for (const [title, what] of [['time', ''], ['kernel or copy', `${t('Kernel')} `]]) {
    const section = A.sections.find(s => s.title === title);
    for (const r of (section?.rows || []).filter(x => !/: (host|fill|drain|dependency|device|queue)|^communication, h/
      .test(x.name) && Math.abs(grows(x)) > 0.01 * step.before_ms).slice(0, 3)) {
      found.push([changeOf(r, 'ms'), ' ', what, r.name, ': ', t('{} ms a step', signed(grows(r), 3)), ' ',
        el('a', { href: `#view=changes&state=${encodeURIComponent(`${title} · ${section.unit}`)}` }, t('Show'))]);
    }
  }
  const low = step.low_percent !== null && t('95% between {}% and {}%', signed(step.low_percent, 1),
    signed(step.high_percent, 1));
  header({ where: `assay · timeline · ${t('{} compared with {}', fileNames(D.runs[1]), fileNames(D.runs[0]))}`,
    verdict: [mark(kind, `${signed(step.change_percent, 1)}% ${t('a step')}`), el('span', { class: 'soft' },
      t(step.verdict))], line: [low, t('steps far from the median left out')].filter(Boolean).join(' · '),
    above: answerList(found),
    numbers: [[t('Before'), span(1e6 * step.before_ms), t('a step')], [t('After'), span(1e6 * step.after_ms),
      t('a step')]] });
}

function changes() {
  const sections = A.sections.map(s => ({ ...s, key: `${s.title} · ${s.unit}` }));
  const now = sections.find(s => s.key === state.get('state')) || sections[0], wanted = state.get('q').toLowerCase();
  const figure = v => (v === null ? '–' : number(+v.toPrecision(5)));
  const column = (key, title) => ({ key, title, number: true, wide: true, width: '128px', value: r => r[key] ?? 0,
    cell: r => figure(r[key]) });
  listed({ filters: [search('q', t('name')), chips('state', sections.map((s, i) => [i ? s.key : '',
    `${t(s.title)}${/^calls/.test(s.unit) ? `, ${t('Calls').toLowerCase()}` : ''} ${number(s.rows.length)}`]))],
  rows: now.rows.filter(r => r.name.toLowerCase().includes(wanted)),
  key: `changes ${now.key}`, make: () => new Table({ label: now.key, id: r => r.name, columns: [
    { key: 'name', title: now.key, value: r => r.name, cell: r => el('span', { title: r.name }, r.name,
      el('span', { class: 'under' }, `${figure(r.before)} → ${figure(r.after)}`)) },
    column('before', t('Before')), column('after', t('After')), { key: 'change', title: t('Change'), number: true,
      width: '112px', value: grows, cell: r => changeOf(r, now.unit) }] }) });
}

// ---- drawing ----

// What is selected: a collective, or sums by kind of the marked time over the rows.
function sums() {
  const [run, call] = state.get('call').split('.').map(Number), called = D.runs[run]?.calls[call];
  if (called) {
    const [name, group, bytes, last, waited] = called, count = partsOf(D.runs[run].rows, call).length;
    return [el('b', null, name), ` · ${[group, t('{} ranks', count), bytes > 0 && `${number(bytes)} B`, last >= 0
      && t('rank {} came last, others waited up to {}', last, span(waited))].filter(Boolean).join(' · ')}`];
  }
  if (!view.marked) return [el('span', { class: 'soft' },
    matchMedia('(pointer: coarse)').matches ? t('Two fingers zoom, one moves, two taps show all.')
      : t('Shift and drag marks a time and sums it up. Wheel or + −: zoom. Drag or ← →: move. 0: all.'),
    D.rows.some(r => r.call.size) && ` ${t('Click a collective or press c: it is shown on all ranks.')}`)];
  const [a, b] = view.marked, all = D.kinds.map((_, k) => D.rows.reduce((n, r) => n + parts(r, a, b, 1)[k][0],
    0) * (b - a)), tracks = D.rows.filter(r => !r.waits && !r.host).length;
  return [el('b', null, span(b - a)), ...D.kinds.map((k, i) => all[i] > 0
    && ` · ${t(WAIT[k] || k)} ${span(all[i])} (${share(all[i], (b - a) * tracks)})`),
    ' · ', el('button', { class: 'plain', type: 'button', click: () => { move(...view.marked); } }, t('Zoom to it'))];
}

let redraw = () => {};
function move(from, to) {
  const width = Math.min(D.span, Math.max(100, to - from));
  view.from = Math.min(Math.max(0, from), D.span - width);
  view.to = view.from + width;
  const [first, last] = width < D.span ? [view.from, view.to].map(v => String(Math.round(v))) : ['', ''];
  state.set({ from: first, to: last }, true);
  redraw();
}
// Selects the next collective, or the one before, and shows it.
function nextCall(by) {
  const all = D.runs.flatMap((r, run) => r.calls.map((_, call) => [run, call]));
  if (!all.length) return;
  const now = all.findIndex(c => c.join('.') === state.get('call')), to = all[(Math.max(now, by < 0 ? 0 : -1) + by
    + all.length) % all.length], [begin, end] = timesOf(...to);
  view.marked = null;
  state.set({ call: to.join('.') }, true);
  begin >= view.from && end <= view.to ? redraw() : move(begin - (end - begin), end + (end - begin));
}
const zoom = (by, x = (view.from + view.to) / 2) => move(x - (x - view.from) * by,
  x - (x - view.from) * by + (view.to - view.from) * by);

function sliceAt(row, time, slack) {
  for (let i = first(row, time - slack); i < row.begin.length && row.begin[i] <= time + slack; i++) {
    if (row.end[i] >= time - slack) return i;
  }
  return -1;
}
const about = (row, i) => (i < 0 ? '' : `${nameOf(row, i)}\n${span(row.end[i] - row.begin[i])}, ${t('from {} on',
  span(row.begin[i], 7))}`);

function timeline() {
  if (!D.rows.length) return [empty(t('No GPU work to draw'), t('The trace has no kernels, copies or pipeline jobs.'))];
  view.from = Math.min(Number(state.get('from')) || 0, D.span - 1);
  view.to = Math.min(Number(state.get('to')) || D.span, D.span);
  if (view.to <= view.from) view.to = D.span;
  const canvas = el('canvas'), overview = el('canvas'), sum = el('p', { class: 'sums', 'aria-live': 'polite' });
  const timeAt = x => view.from + (x - left()) / (canvas.clientWidth - left()) * (view.to - view.from);
  let frame = 0;
  redraw = () => { cancelAnimationFrame(frame); frame = requestAnimationFrame(() => { if (!canvas.isConnected) return;
    draw(canvas, overview); fill(sum, sums()); }); };
  let held = null;
  const fingers = new Map();  // their places, by pointer
  const down = event => {
    fingers.set(event.pointerId, event.offsetX);
    held = fingers.size === 2 ? { pinched: [...fingers.values()].map(timeAt) }
      : { x: event.offsetX, from: view.from, to: view.to, marks: event.shiftKey };
    canvas.setPointerCapture(event.pointerId);
  };
  // The times below two fingers stay below them.
  const pinch = () => {
    const [a, b] = [...fingers.values()].sort((x, y) => x - y), [from, to] = held.pinched.toSorted((x, y) => x - y);
    const per = (to - from) / Math.max(8, b - a), begin = from - (a - left()) * per;
    move(begin, begin + per * (canvas.clientWidth - left()));
  };
  const moved = event => {
    if (fingers.has(event.pointerId)) fingers.set(event.pointerId, event.offsetX);
    if (held?.pinched) return fingers.size === 2 && pinch();
    if (held?.marks) {
      state.set({ call: '' }, true);
      view.marked = [held.x, event.offsetX].map(x => Math.min(D.span, Math.max(0, timeAt(x)))).sort((a, b) => a - b);
      return redraw();
    }
    if (held) { const by = (held.x - event.offsetX) / (canvas.clientWidth - left()) * (held.to - held.from);
      return move(held.from + by, held.to + by); }
    const [row, i] = under(event);
    tip(event, row && (event.offsetX < left() ? `${row.l}${row.waits ? ` · ${shortLabel(row)}` : ''}` : about(row, i)));
  };
  const under = event => {
    const row = D.rows.find(r => event.offsetY >= r.y && event.offsetY < r.y + r.high);
    return [row, row ? sliceAt(row, timeAt(event.offsetX), (view.to - view.from) / canvas.clientWidth) : -1];
  };
  const up = event => {
    fingers.delete(event.pointerId);
    if (held && !held.marks && Math.abs(event.offsetX - held.x) < 3) {
      const [row, i] = under(event), call = row?.call.get(i);
      view.marked = null;
      state.set({ call: call === undefined ? '' : `${row.run}.${call}` }, true);
      if (row?.waits && i >= 0) move(2 * row.begin[i] - row.end[i], 2 * row.end[i] - row.begin[i]);  // and what the host did
      redraw();
    }
    held = null;
  };
  for (const [name, does] of Object.entries({ pointerdown: down, pointermove: moved, pointerup: up,
    pointercancel: event => { fingers.delete(event.pointerId); held = null; }, pointerleave: () => tip(), dblclick: () => move(0, D.span) })) canvas.addEventListener(name, does);
  canvas.addEventListener('wheel', event => { event.preventDefault(); zoom(event.deltaY > 0 ? 1.25 : 0.8,
    timeAt(event.offsetX)); }, { passive: false });
  const there = event => { const x = (event.offsetX - left()) / (overview.clientWidth - left()) * D.span, half = (view.to - view.from) / 2;
    if (event.buttons) move(x - half, x + half); };
  for (const name of ['pointerdown', 'pointermove']) overview.addEventListener(name, there);
  const keys = event => {
    const by = (view.to - view.from) / 5, go = ns => () => move(view.from + ns, view.to + ns), near = () => zoom(0.7),
      far = () => zoom(1.4), does = { '+': near, '=': near, w: near, '-': far, s: far, ArrowLeft: go(-by), a: go(-by),
        ArrowRight: go(by), d: go(by), 0: () => move(0, D.span), c: () => nextCall(1), C: () => nextCall(-1) }[event.key];
    if (does && !event.ctrlKey && !event.metaKey) { event.preventDefault(); does(); }
  };
  const used = new Set();
  for (const { s, waits } of D.rows) for (let j = 2; j < s.length; j += 4) used.add(waits ? COLOURS.length : s[j]);
  const legend = el('div', { class: 'legend' }, [...used].sort((a, b) => a - b).map(i => { const box = el('i');
    box.style.background = colourOf(i); box.style.height = '8px';
    return el('span', null, box, t(COLOURS[i] ? D.kinds[i] : 'waiting')); }));
  const host = el('div', { class: 'drawing', tabindex: '0', role: 'application',
    'aria-label': t('Timeline: + and − zoom, arrows move, 0 shows all'), keydown: keys }, overview, canvas);
  new ResizeObserver(redraw).observe(host);
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => redraw());
  const rank = state.get('rank'), row = rank && D.rows.find(r => String(r.rank) === rank);
  if (row) requestAnimationFrame(() => scrollTo(0, canvas.getBoundingClientRect().top + scrollY + row.y - 96));
  const pieces = D.runs.find(r => r.pieces_ns > 0);
  return [legend, sum, host, pieces && el('p', { class: 'soft' },
    t('The trace is large: the drawing shows sums over {}.', span(pieces.pieces_ns))),
    D.runs.map(r => r.files.length > 0 && code(`${t('Open in Perfetto')}${r.title ? ` · ${r.title}` : ''}`,
      `assay timeline open ${r.files[0]}`)), (A.notes || []).map(n => el('p', { class: 'soft small' }, n))];
}

// ---- tables ----

function ranks() {
  const of = (key, title) => ({ key, title, number: true, width: '112px', wide: true,
    value: d => d.total[key] / (d.total.span_ns || 1), cell: d => share(d.total[key], d.total.span_ns) });
  listed({ filters: [], rows: A.devices, key: 'ranks', make: () => new Table({ label: t('GPUs'), id: d => d.label,
  columns: [
    { key: 'label', title: t('GPU'), value: d => d.label, cell: d => el('span', null, d.label,
      el('span', { class: 'under' },
      `${t('Compute')} ${share(d.total.compute_ns, d.total.span_ns)} · ${t('Idle')} ${share(d.total.idle_ns, d.total.span_ns)}`)) },
    of('compute_ns', t('Compute')), of('communication_ns', t('Communication')), of('hidden_communication_ns',
      t('of it hidden')), of('memory_ns', t('Copies')), of('idle_ns', t('Idle')), of('data_loader_ns', t('Data loader'))],
  open: d => [el('h2', { class: 'minor' }, t('Idle time by cause')),
    bars(Object.entries(d.total.idle_by_cause_ns).filter(([, n]) => n > 0).sort((a, b) => b[1] - a[1]).map(([c, n]) =>
    [t(WAIT[c] || c), n, `${span(n)} · ${share(n, d.total.span_ns)}`])),
    el('h2', { class: 'minor' }, t('By step')), plainTable([t('Step'), t('Compute'), t('Communication'), t('Idle')],
      d.steps.slice(0, 200).map((s, i) => [String(A.steps[i]?.number ?? i), share(s.compute_ns, s.span_ns),
      share(s.communication_ns, s.span_ns), share(s.idle_ns, s.span_ns)]), [1, 2, 3])] }) });
}

function steps() {
  const middle = median(A.steps.map(s => s.length_ns));
  return [A.steps.length > 1 && lines({ title: t('Length of the steps'), x: { label: t('step'),
    ticks: A.steps.length < 12 ? A.steps.map(s => s.number) : undefined }, y: { format: v => span(v, 3) },
    base: [middle, t('median')], series: [{ name: t('length'), kind: 'accent', points: A.steps.map(s => [s.number, s.length_ns]) }] }),
    stepTable(middle)];
}

function stepTable(middle) {
  const ratio = s => `${(s.length_ns / (middle || 1)).toFixed(2)}×`, columns = [
    [t('Step'), s => el('a', { href: stepLink(s.number) }, String(s.number))], [t('Length'), s => span(s.length_ns)],
    [t('To the median'), s => (s.length_ns > SLOW * middle && A.steps.length > 2 ? mark('flaky', ratio(s)) : ratio(s))],
    [t('Schedule'), s => (s.schedule === 'none' ? '' : s.schedule)],
    [t('Bubble'), s => (s.schedule === 'none' ? '' : share(s.bubble, 1))]]
    .filter(([, cell]) => A.steps.some(s => cell(s) !== ''));
  return plainTable(columns.map(([title]) => title), A.steps.slice(0, 1000).map(s => columns.map(([, cell]) => cell(s))),
    columns.map((_, i) => i).slice(1));
}

function kernels() {
  const wanted = state.get('q').toLowerCase(), rows = A.kernels.filter(k => !wanted
    || `${k.name} ${k.kind}`.toLowerCase().includes(wanted)), all = A.kernels.reduce((n, k) => n + k.total_ns, 0);
  const time = (key, title, wide = true) => ({ key, title, number: true, wide, width: '104px', value: k => k[key],
    cell: k => span(k[key]) });
  listed({ filters: [search('q', t('kernel'))], rows, key: 'kernels', make: () => new Table({ label: t('Kernels'),
  id: k => k.name, columns: [
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
    number(k.bytes_per_call)]].filter(Boolean))] }) });
}

const report = () => [code('', D.report)];

function show() {
  const two = D.runs.length > 1, views_ = { timeline, changes, ranks, steps, kernels, report };
  two ? twoHead() : head();
  const list = (two ? [['timeline', t('Timelines')], ['changes', t('Changes')], ['report', t('Report')]]
    : [['timeline', t('Timeline')], A.devices.length && ['ranks', t('GPUs'), A.devices.length], A.steps.length
    && ['steps', t('Steps'), A.steps.length], A.kernels?.length && ['kernels', t('Kernels'), A.kernels.length],
    ['report', t('Report')]]).filter(Boolean);
  Table.shown = null;
  const shown = views_[views(list)]();
  if (shown) fill(at('main'), shown);
}

KEYS.push(['+  −', 'Zoom the timeline'], ['←  →', 'Move the timeline'], ['c  C', 'Next and previous collective']);
addEventListener('hashchange', show);
Promise.all([at('data'), at('analysis')].map(inside)).then(([data, analysis]) => {
  A = analysis;
  prepare(data);
  show();
});
