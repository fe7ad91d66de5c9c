// The page of a run: polled from `assay serve`, or embedded into this file (report.html).
import { answerList, at, chips, clock, code, copyButton, duration, el, empty, facts, fill, header, inside, lasted, mark, number,
  percent, plural, search, shellWord, state, t, unpack, views } from './kit.js';
import { Table, listed, plainTable } from './table.js';
import { bars, heat, histogram, lines, ratios } from './charts.js';

const EVERY_MS = 2000, FIRST_MS = 150;  // between looks at a run; until there is something to show
const GOOD = ['pass', 'rejected', 'same', 'fast'], WITHOUT = ['unsupported', 'no_golden', 'skip', 'no_kernel', 'unsure', 'self_only'];
const HEAT_ROWS = 40;
let run = null, parts = [], begun = null;

const kindOf = outcome => (GOOD.includes(outcome) ? 'pass' : WITHOUT.includes(outcome) ? 'none' : 'fail');
const sum = values => values.reduce((a, b) => a + b, 0);
const by = outcomes => {
  const count = wanted => sum(Object.entries(outcomes).filter(([o]) => wanted(o)).map(([, n]) => n));
  const all = count(() => true), judged = count(o => !WITHOUT.includes(o)), good = count(o => GOOD.includes(o));
  return { all, judged, good, failed: judged - good, without: all - judged };
};

const REGIMES = { usual: 'what users pass', wide: 'from tiny to huge', nan: 'some rows are NaN', infinity: 'some rows are infinite',
  bulk: 'all are -inf', exact: 'whole numbers and halves', layout: 'memory that is not contiguous', constant: 'all are equal' };
const regime = name => (REGIMES[name] ? `${name} (${t(REGIMES[name])})` : name);

// How a finding fails, in one short phrase.
function phrase(f) {
  const where = f.where || '', shapes = { value: 'differs', 'NaN or infinity wrong': 'has NaN or infinity in one lane only', changed: 'is changed' };
  const name = where.replace(/^gradient of/, t('gradient of')).replace(/^the input/, t('input')).replace(/^result/,
    t('result'));
  let text = !where ? f.how
    || t(f.outcome) : `${name} ${t(shapes[f.how] || (/lane$/.test(where) ? '' : 'differs in {}'), f.how)}`;
  if (/ lane$/.test(where)) text = f.how || t(f.outcome);
  const values = f.values || [];
  return values.length && values.length < 3 && !values.includes('usual')
    ? `${text.trim()} ${t('under {} values', values.map(regime).join(', '))}` : text.trim();
}

// What came and what is right; or else the message.
function why(f) {
  const { got, expected } = f.element || {};
  return got && expected && got !== expected ? t('got {}, expected {}', got, expected) : (f.message || '').slice(0, 200);
}

// ---- header ----

const laneText = (p, role) => {
  const lane = p[`${role}.lane`];
  if (!lane) return null;
  const same = p[`${role}.framework`] === p['test.framework'] && p['test.lane'];  // lanes of one build share its property
  const build = [lane, same].map(l => p[`${l}.build`] || p[l]).find(Boolean) || '';
  return `${p[`${role}.framework`] || lane} ${build.replace(/, files.*/, '')} (${p[`${role}.device`]}, ${p[`${role}.execution`]})`;
};

function verdict() {
  const of = by(run.outcomes), against = run.against, words = [];
  const say = (kind, count, word) => count > 0 && words.push(mark(kind, `${number(count)} ${t(word)}`));
  const slow = (against?.rows || []).filter(r => r.speed === 'slow').length;
  const bad = against ? against.new.length + against.grown.length + slow : of.failed;
  const open = run.unfinished || against?.lost.length || !of.judged || run.outcomes.self_only;
  const plain = bad ? 'fails' : !open ? 'passes' : 'not judged', word = run.verdict?.word || plain;
  words.push(word === 'fails' ? mark('fail', t('fails')) : word === 'passes' ? mark('pass', t('passes')) : mark('none',
    run.unfinished || of.judged ? t('not judged') : of.all ? t('Nothing was judged') : t('No case has run')));
  if (word !== plain) words.push(el('span', { class: 'soft' }, run.verdict.reason));  // --strict, --fail-on, --allow
  if (run.unfinished) words.push(mark('accent', t('{}% finished', Math.floor(100 * (1
    - run.unfinished / run.planned)))));
  if (against) {
    say('new', against.new.length, 'new');
    say('new', against.grown.length, 'grown');
    say('fail', slow, 'slower');
    say('known', against.known.length, 'known');
    say('pass', against.fixed.length, 'fixed');
    say('none', against.lost.length, 'lost coverage');
  } else if (of.failed) {
    say('fail', of.failed, 'failed');
    words.push(el('span', { class: 'soft' }, plural(run.findings.length, 'finding')));
  }
  say('pass', of.good, 'passed');
  return words;
}

// The worst findings, and the command that repeats the first one.
function worst() {
  const bad = run.findings.filter(f => !run.against || f.state !== 'known'), first = bad.find(f => f.id && f.outcome !== 'invalid');
  return answerList([...bad.slice(0, 3).map(f => [mark(run.against ? STATE_KIND[f.state] : 'fail'), ' ',
    el('a', { href: `#open=${encodeURIComponent(f.digest)}` }, f.api), ` ${phrase(f)}`, !phrase(f).includes(why(f)) && el('span', { class: 'soft' }, `: ${why(f)}`)]),
  bad.length > 3 && el('span', { class: 'soft' }, t('and {} more', number(bad.length - 3))),
  first && code(t('Run it again'), rerun(first.text))]);
}

function head() {
  const p = run.properties || {}, done = run.planned - run.unfinished, of = by(run.outcomes || {});
  const live = run.rate !== undefined || run.reading, open = name => at('head').querySelector(`#${name}`)?.open;
  const focused = document.activeElement?.closest('#head details')?.id;
  const share = run.planned ? done / run.planned : 0, span = run.history || [];
  const minutes = span.length && span.at(-1)[0] - span[0][0] + 60000;
  const before = run.against && (run.runs || []).find(r => r.name === run.against.past.split('/').at(-1));
  const builds = ['test', 'reference'].map(role => laneText(p, role)).filter(Boolean);
  const progress = [t('{} of {} cases', number(done),
    number(run.planned)) + ` (${(Math.floor(1000 * share) / 10).toFixed(1)}%)`,
    run.rate > 0 && `${run.rate.toFixed(run.rate < 10 ? 1 : 0)} ${t('cases/s')}`,
    run.eta_s !== undefined && run.unfinished && t('{} left', duration(run.eta_s)),
    run.reading && t('reading earlier results: {} cases so far', number(run.read))].filter(Boolean);
  const line = [builds.join(` ${t('against')} `), run.against && t('compared with {}', run.against.past),
    !run.unfinished && plural(of.all, 'case'), span.length && clock(span.at(-1)[0])].filter(Boolean);
  const bar = el('div');
  bar.style.width = `${100 * share}%`;
  const settings = (run.against?.settings || []).map(s =>
    [s.key, `${s.before} → ${s.now}${s.bearing ? ` (${s.bearing})` : ''}`]);
  header({ where: ['assay', p.mode, run.name].filter(Boolean).join(' · '),
    verdict: run.outcomes ? verdict() : t('Reading the run'), line: line.join(' · '),
    above: [(run.unfinished || (live && !run.planned)) && [el('div', { class: 'progress', role: 'progressbar', 'aria-valuenow': Math.floor(100 * share),
      'aria-valuemin': 0, 'aria-valuemax': 100, 'aria-label': t('Progress') }, bar),
      el('p', { id: 'progress' }, progress.join(' · ')),
      run.running && runningNow(run.running, open('running'))], run.outcomes && worst()],
    numbers: [[t('Pass rate'), percent(of.good, of.judged), of.judged > 0 && t('of {} judged', number(of.judged))],
      run.against && [t('Failed cases'), number(of.failed), of.failed > 0 && t('in {}', plural(run.findings.length,
        'finding'))], [t('Not judged'), number(of.without)],
      [t('APIs'), number((run.apis || []).length)],
      minutes && [t('Duration'), lasted(minutes), before?.duration_ms > 0 && t('was {}', lasted(before.duration_ms))]],
    below: el('details', { id: 'settings', open: open('settings') }, el('summary', null, t('Settings and machine')),
      facts([...settings, ...Object.entries(p).filter(([, v]) => v !== '')])) });
  if (focused) at(focused)?.querySelector('summary').focus();
  if (run.trouble) trouble(run.trouble);
}

function runningNow(cases, open) {
  const [longest] = cases;
  return el('details', { id: 'running', open }, el('summary', null, plural(cases.length, 'case'), ` ${t('running')} · `,
    t('the longest for {}', duration(longest.seconds)), ' · ', el('code', null, longest.case.split('(')[0])),
  plainTable([t('Case'), t('Seconds')], cases.map(c => [el('code', null, c.case), number(Math.round(c.seconds))]), [1]));
}

function trouble(text) {
  at('head').querySelector('.trouble')?.remove();
  at('head').prepend(el('p', { class: 'trouble', role: 'alert' }, text));
}

// ---- findings ----

const stateOf = f => (f.state === 'fixed' ? 'fixed' : run.against ? f.state : '');
const STATE_KIND = { new: 'new', grown: 'new', known: 'known', fixed: 'pass' };

function findingColumns() {
  const compared = run.against && { key: 'state', title: t('State'), width: '88px', wide: true,
    value: f => Object.keys(STATE_KIND).indexOf(stateOf(f)), cell: f => mark(STATE_KIND[stateOf(f)], t(stateOf(f))) };
  return [
    { key: 'api', title: 'API', width: '32%', value: f => f.api, cell: f => el('span', null,
      mark(run.against ? STATE_KIND[stateOf(f)] : 'fail'), ' ', f.api,
      el('span', { class: 'under' }, `${plural(f.cases, 'case')} · ${phrase(f)}`)) },
    { key: 'how', title: t('How it fails'), wide: true, value: phrase, cell: phrase },
    { key: 'cases', title: t('Cases'), number: true, width: '88px', wide: true, value: f => f.cases,
      cell: f => number(f.cases) },
    { key: 'dtypes', title: el('span', { title: t('dtypes of the wrong results') }, t('dtypes')), width: '18%', wide: true, cell: f => (f.dtypes || []).join(', ') },
    compared,
    { key: 'since', title: t('Since'), width: '128px', wide: true, value: f => f.since?.last_ms || 0, cell: sinceText },
  ].filter(Boolean);
}

// The oldest run that has the finding, and every run since.
function sinceText(f) {
  if (f.since && f.since.name !== run.name) return f.since.name;
  return run.against && f.state !== 'new' ? run.against.past.split('/').at(-1) : t('this run');
}

// Input, got and expected at the worst element.
function values(element) {
  if (!element) return null;
  const row = (name, value) => value && el('tr', null, el('th', { scope: 'row' }, name),
    el('td', null, el('code', null, value)));
  const inputs = (element.inputs || []).map(i => row(`${i.name}${i.position || ''}`, [i.value || i.whole, i.value
    && i.whole && i.whole.length < 200 && i.position !== '[]' ? ` of ${i.whole}` : '', ` ${i.type}`].join('')));
  const differs = element.got !== element.expected;  // the values of a large result are not kept
  return el('div', null, el('h2', { class: 'minor' }, [differs ? t('Worst element') : t('Inputs'), differs && element.where,
    element.position !== '[]' && element.position].filter(Boolean).join(' · ')), el('table', { class: 'values' },
    el('tbody', null, differs && [row(t('Got'), element.got), row(t('Expected'), element.expected),
      element.reference !== element.expected && row(t('Reference'), element.reference)], inputs)));
}

const rerun = text => run.rerun.replace('--api_config=@', () => `--api_config=${shellWord(text)}`);

function openFinding(f) {
  const notes = [f.values?.length && [t('Value regimes'), f.values.map(regime).join(', ')], f.dtypes?.length && [t(f.where
    ? 'dtypes of the wrong results' : 'dtypes'), f.dtypes.join(', ')],
    f.why && [t('Grown'), f.why], f.reason && [t('Known because'), f.reason], f.owner && [t('Owner'), f.owner],
    f.upstream && [t('Reported'), /^https:\/\//.test(f.upstream)
      ? el('a', { href: f.upstream, rel: 'noopener noreferrer' }, f.upstream) : f.upstream],
    f.last_ms > 0 && [t('Last seen'), clock(f.last_ms)], [t('Finding'), f.digest],
    f.id && [t('Case id'), f.id]].filter(Boolean);
  const more = el('div'), script = got => fill(more, code(t('Script without assay'), got.script),
    !got.script && run.finding && f.outcome !== 'invalid' && f.id && code(t('Write its script'),
      `${run.finding} ${f.digest} --script=finding.py`),
    got.no_script && el('p', null, got.no_script), got.issue && el('p', null, copyButton(got.issue, t('Copy as an issue'))),
    got.logs?.length > 0 && facts([[t('Logs'), got.logs.map((l, i) => [i ? ', ' : '', el('a',
      { href: encodeURI(l), target: '_blank' }, l.split('/').at(-1))])]]));
  script(f);
  if (!at('data')) details(f.digest).then(script);
  return [el('p', null, f.message), el('div', { class: 'split' },
    el('div', null, values(f.element), f.text && code(t('Case'), f.text), code(t('Smallest case that still fails'),
      f.shrunk)),
    el('div', null, f.text && f.outcome !== 'invalid' && code(t('Run it again'), rerun(f.text)), more, facts(notes)))];
}
// What `assay serve` gives of a finding on demand: script, issue, logs.
const fetched = new Map();
const details = digest => fetched.get(digest) || fetched.set(digest, asked(`finding/${digest}`).then(r => r.json(),
  () => ({}))).get(digest);

const NO_FINDING = () => (run.unfinished ? [t('No failure so far'), ''] : by(run.outcomes).judged
  ? [t('All judged cases passed'), t('{} cases', number(by(run.outcomes).good))] : [t('Nothing was judged'),
    el('a', { href: '#view=unjudged' }, t('Reasons'))]);

function findings() {
  const noted = Object.fromEntries(['new', 'grown', 'known'].flatMap(s => run.against?.[s] || []).map(f => [f.digest,
    f]));
  const fixed = (run.against?.fixed || []).map(f => ({ ...f, state: 'fixed', text: f.case || '' }));
  const found = new Set(run.findings.map(f => f.digest));
  const beside = Object.entries(run.against || {}).filter(([s]) => s in STATE_KIND && s !== 'fixed')
    .flatMap(([s, list]) => list.filter(f => !found.has(f.digest)).map(f => ({ ...f, state: s, text: f.case || '' })));
  const all = [...run.findings.map(f => ({ ...noted[f.digest], ...f })), ...beside, ...fixed];
  const wanted = state.get('q').toLowerCase(), of = state.get('state'), outcome = state.get('outcome');
  const rows = all.filter(f => (of ? stateOf(f) === of : stateOf(f) !== 'fixed')
    && (!outcome || f.outcome === outcome) &&
    (!wanted || `${f.api} ${f.outcome} ${phrase(f)} ${f.message} ${f.text} ${f.digest}`.toLowerCase().includes(wanted)));
  const tally = (key, list) => [...list.reduce((m, f) => m.set(key(f), (m.get(key(f)) || 0) + 1), new Map())];
  const states = run.against ? tally(stateOf, all).map(([s, n]) =>
    [s, mark(STATE_KIND[s], `${t(s)} ${number(n)}`)]) : [];
  const outcomes = tally(f => f.outcome, all).map(([o, n]) => [o, `${o} ${number(n)}`]);
  return listed({ filters: [search('q', t('API, message, case')), chips('state', states), outcomes.length > 1
    && chips('outcome', outcomes)], rows,
    key: `findings${run.against ? 1 : 0}`, make: () => new Table({ columns: findingColumns(), id: f => f.digest,
      open: openFinding, none: all.length ? null : NO_FINDING(), label: t('Findings') }) });
}

// ---- cases ----

function cases() {
  const outcome = state.get('outcome'), text = state.get('q').toLowerCase(), rows = [], flagged = [];
  let read = 0;
  parts.forEach((part, p) => {
    read += part.id.length;
    for (let i = 0; i < part.id.length; ++i) {
      if (outcome && part.outcome[i] !== outcome) continue;
      if (text && !`${part.text[i]} ${part.message[i]} ${part.id[i]} ${part.kinds[i]}`.toLowerCase().includes(text)) continue;
      (kindOf(part.outcome[i]) === 'fail' ? rows : flagged).push(p * run.of_part + i);
    }
  });
  for (const row of flagged) rows.push(row);
  const get = (row, column) => parts[Math.floor(row / run.of_part)][column][row % run.of_part];
  const choices = Object.entries(run.outcomes).filter(([o]) => kindOf(o) === 'fail').map(([o, n]) =>
    [o, mark('fail', `${o} ${number(n)}`)]);
  const notes = [read < run.listed && t('{} of {} read', number(read), number(run.listed)),
    run.left_out && t('{} more are not listed here: assay report --list',
      number(run.left_out))].filter(Boolean).join(' · ');
  listed({ filters: [search('q', t('case, message, id')), chips('outcome', choices),
    notes && el('span', { class: 'soft' }, notes)], rows, key: 'cases', make: () => new Table({
    label: t('Cases'), id: row => get(row, 'id') || get(row, 'lane'), none: run.listed ? null : NO_FINDING(),
    columns: [{ key: 'case', title: t('Case'), value: row => get(row, 'text'), cell: row => el('span', null,
      el('code', null, get(row, 'text')), el('span', { class: 'under' }, mark(kindOf(get(row, 'outcome')),
      get(row, 'outcome')), get(row, 'message') && ` · ${get(row, 'message')}`)) },
      { key: 'outcome', title: t('Outcome'), width: '152px', wide: true, value: row => get(row, 'outcome'),
        cell: row => mark(get(row, 'flags') && kindOf(get(row, 'outcome')) !== 'fail'
        ? 'flaky' : kindOf(get(row, 'outcome')), get(row, 'outcome')) },
      { key: 'message', title: t('Message'), width: '40%', wide: true, value: row => get(row, 'message'),
        cell: row => get(row, 'message') }],
    open: row => [el('p', null, get(row, 'message')), code(t('Case'), get(row, 'text')), get(row, 'id')
      && code(t('Run it again'), rerun(get(row, 'text'))),
      facts([[t('Outcome'), get(row, 'outcome')], [t('Differs in'), get(row, 'kinds')], [t('Lane'), get(row, 'lane')],
        [t('Flags'), get(row, 'flags')], ['id', get(row, 'id')]].filter(([, v]) => v))] }) });
}

// ---- APIs ----

function apis() {
  const dtypes = [...run.dtypes].sort((a, b) => by(b.outcomes).all - by(a.outcomes).all).map(d => d.dtype);
  const wanted = state.get('q').toLowerCase(), only = state.get('outcome');
  const rows = run.apis.filter(a => (!wanted || a.api.toLowerCase().includes(wanted)) && (!only || a.failed));
  const cell = outcomes => {
    if (!outcomes) return '';
    const of = by(outcomes);
    return of.failed ? mark('fail', number(of.failed)) : of.judged ? mark('pass') : mark('none');
  };
  const title = outcomes => Object.entries(outcomes || {}).map(([o, n]) => `${number(n)} ${o}`).join(', ');
  const short = d => d.replace('float', 'f').replace('uint', 'u').replace('int', 'i').replace('complex',
    'c').replace('bf', 'bf');
  listed({ filters: [search('q', 'API'), chips('outcome', [['failed', mark('fail', t('with failures'))]]),
    el('span', { class: 'row small' }, mark('fail', t('failed cases')), mark('pass', t('all passed')),
      mark('none', t('not judged')))],
  rows, key: `apis${dtypes.join()}`, make: () => new Table({ label: t('APIs by dtype'), id: a => a.api,
    columns: [{ key: 'api', title: 'API', value: a => a.api, cell: a => el('span', null, a.api, el('span', { class: 'under' }, title(a.outcomes))) },
      { key: 'rate', title: t('Passed'), number: true, width: '80px',
        value: a => by(a.outcomes).good / (by(a.outcomes).judged || Infinity), cell: a => percent(by(a.outcomes).good,
        by(a.outcomes).judged) },
      { key: 'cases', title: t('Cases'), number: true, wide: true, width: '80px', value: a => by(a.outcomes).all,
        cell: a => number(by(a.outcomes).all) },
      ...dtypes.map(d => ({ key: d, title: el('span', { title: d }, short(d)), number: true, wide: true,
        width: `${Math.min(88, 900 / dtypes.length)}px`, value: a => by(a.dtypes[d] || {}).failed,
        cell: a => { const c = el('span', { title: `${d}: ${title(a.dtypes[d])}` }, cell(a.dtypes[d]));
        return a.dtypes[d] ? c : ''; } }))],
    open: a => [plainTable([t('dtype'), ...Object.keys(a.outcomes)], Object.entries(a.dtypes).map(([d, o]) =>
      [d, ...Object.keys(a.outcomes).map(k => number(o[k] || 0))]), Object.keys(a.outcomes).map((_, i) => i + 1)),
      el('p', null, el('a', { href: `#view=cases&q=${encodeURIComponent(`${a.api}(`)}` },
        t('Failed cases of this API')))] }) });
}

// ---- values, time, not judged, history ----

function regimes() {
  const rows = new Map();
  const of = name => rows.get(name) || rows.set(name, { findings: 0, cases: 0, missing: 0, why: [] }).get(name);
  for (const f of run.findings) for (const name of f.values || []) { ++of(name).findings; of(name).cases += f.cases; }
  for (const [name, why, n] of run.not_judged.regimes) { of(name).missing += n; of(name).why.push([n, why]); }
  const list = [...rows].sort((a, b) => b[1].findings - a[1].findings);
  if (!list.length) return [empty(t('No value regime to report'),
    t('Nothing failed, and every case ran under every regime.'))];
  return [el('h2', null, t('Findings by value regime')), el('p', { class: 'soft' },
    t('A finding counts in each regime that shows it.')),
    bars(list.filter(([, r]) => r.findings).map(([name, r]) => [regime(name), r.findings, plural(r.findings, 'finding')])),
    el('h2', null, t('Cases that did not run in a regime')),
    plainTable([t('Regime'), t('Cases'), t('Why')],
      list.flatMap(([name, r]) => r.why.sort((a, b) => b[0] - a[0]).map(([n, why]) => [regime(name), number(n), why])), [1])];
}

function times() {
  const cost = row => 1000 * row.seconds, shown = [], seconds = ms => (ms / 1000 < 10
    ? (ms / 1000).toFixed(2) : number(Math.round(ms / 1000)));
  const rows = run.apis.map(a => ({ name: a.api, cases: by(a.outcomes).all, seconds: a.seconds, stage_ms: a.stage_ms }));
  const costly = rows.filter(r => cost(r) > 0).sort((a, b) => cost(b) - cost(a));
  const cells = r => [[r.name, number(r.cases), seconds(cost(r))], r.stage_ms];
  const ms = v => (v ? v < 1000 ? v.toFixed(v < 10 ? 3 : 1) : number(Math.round(v)) : '·'), heads = what => [what, t('cases'), t('seconds'),
    ...run.stages.map(s => t(s))];
  if (run.times) {
    const both = run.times.rows.some(r => r.reference);
    shown.push(el('h2', null, t('Timings')), both && ratios(t('Test lane to reference lane, slowest first'),
      run.times.rows.filter(r => r.decides), t('timings')),
      timeTable(run.times.rows, both ? [t('Test lane'), t('Reference lane'), t('Test to reference')] : [t('Time')],
        both ? r => [r.test, r.reference] : r => [r.test]));
  }
  if (run.against?.rows?.length) {
    shown.push(el('h2', null, t('Changed times')), ratios(t('This run to the past run, largest slowdown first'),
      run.against.rows, t('timings')),
      timeTable(run.against.rows, [t('Now'), t('Then'), t('Now to then')], r => [r.now, r.then]));
  }
  const points = column => run.history.map(h => [h[0], h[column]]);
  const hosts = run.workers && [el('h2', null, t('Workers')), plainTable([t('Worker'), t('Bundles'), t('Cases'),
    t('Lease')],
    run.workers.map(w => [w.name, number(w.bundles), number(w.cases), w.seconds_left < 0
      ? mark('fail', t('expired')) : `${w.seconds_left.toFixed(0)} s`]), [1, 2, 3])];
  if (!shown.length && !hosts && !costly.length && run.history.length < 2) return [empty(t('No times yet'), '')];
  return [shown, hosts, el('div', { class: 'split' }, run.history.length > 1 && lines({ title: t('Finished cases by minute'),
    x: { time: true, label: t('time') }, y: {},
    series: [{ name: t('cases'), kind: 'accent', points: points(1) }, { name: t('failed'), kind: 'fail',
      points: points(2) }] }),
  histogram({ title: t('APIs by the mean time of a case'), unit: 'ms', values: rows.map(r => sum(r.stage_ms)) })),
  run.sizes.length > 0 && [el('h2', null, t('Mean milliseconds of a case in each stage, by size')),
    heat(heads(t('size')), run.sizes.map(s => cells({ ...s, name: t(s.size) })), ms)],
  costly.length > 0 && [el('h2', null, t('The same by API, most expensive first')),
    heat(heads('API'), costly.slice(0, HEAT_ROWS).map(cells), ms)]];
}

function timeTable(rows, heads, cells) {
  const told = heads.length > 1;
  return plainTable([t('Case'), t('What'), ...heads, ...(told ? [''] : [])],
    rows.map(r => [el('code', null, r.case), r.what, ...cells(r),
    ...(told ? [r.told || '', r.speed ? mark({ slow: 'fail', fast: 'pass' }[r.speed] || 'known',
      t(r.speed)) : ''] : [])]), heads.map((_, i) => i + 2));
}

function unjudged() {
  const meanings = Object.fromEntries(run.meanings.map(([o, , is]) => [o, is])), p = run.outcomes;
  const rows = WITHOUT.filter(o => p[o]).map(o => [mark('none', o), number(p[o]), t(meanings[o])]);
  const skipped = run.not_judged.skipped.sort((a, b) => b[1] - a[1]), lost = run.against?.lost || [],
    known = run.accommodated;
  return [rows.length ? [el('h2', null, t('Cases without a verdict')), plainTable([t('Outcome'), t('Cases'), t('Why')],
    rows, [1])]
    : !lost.length && !known.rows.length && empty(t('Every case was judged'), ''),
  lost.length > 0 && [el('h2', null, t('Judged before, not in this run')),
    plainTable(['API', t('dtype'), t('How'), t('Cases'), t('Not judged'), t('Rejected')],
    lost.map(l => [l.api, l.dtype, l.how, number(l.cases), number(l.not_judged), number(l.rejected)]), [3, 4, 5])],
  skipped.length > 0 && [el('h2', null, t('Skipped, by reason')),
    bars(skipped.slice(0, 50).map(([why, n]) => [why || t('no reason was kept'), n, number(n)]))],
  known.rows.length > 0 && [el('h2', null, t('Known deviations')), el('p', { class: 'soft' },
    t('{} cases are of APIs whose reference follows Paddle, or whose inputs avoid a known bug: there a pass proves nothing.', number(known.cases))),
    plainTable(['API', t('Deviation')], known.rows)]];
}

// Runs as a table. Where the server shows a folder of runs, each leads to its page.
const nested = /\/run\/[^/]+\/$/.test(location.pathname);
const runsTable = runs => plainTable([t('Run'), t('Last result'), t('Passed'), t('Failed'), t('Cases'), t('Duration'), t('Build')],
  runs.map(r => {
    const of = by(r.outcomes || {}), name = r.name === run.name ? el('b', null, r.name) : r.name;
    return [nested || run.nights ? el('a', { href: `${nested ? '../' : 'run/'}${encodeURIComponent(r.name)}/` }, name) : name,
      clock(r.last_ms), percent(of.good, of.judged), number(of.failed), number(of.all), r.duration_ms > 0 ? lasted(r.duration_ms)
        : '–', el('span', { class: 'soft' }, r.sampled && `${t('a sample of it')}, `, r.build || r.trouble)];
  }), [2, 3, 4, 5]);

// What `assay serve` shows of a folder of runs, newest first.
function nights() {
  const [last] = run.nights, failed = last && by(last.outcomes || {}).failed, now = JSON.stringify(run.nights);
  if (now === drawn) return;
  drawn = now;
  header({ where: `assay · ${run.name}`, verdict: [last.name, ' ', failed ? mark('fail', `${number(failed)} ${t('failed')}`)
    : mark('pass', t('No failure so far'))], line: plural(run.nights.length, 'run'), numbers: [] });
  fill(at('main'), runsTable(run.nights));
}

function past() {
  const own = by(run.outcomes).all, series = run.runs.filter(r => r.name === run.name || (by(r.outcomes).all > own / 2
    && by(r.outcomes).all < own * 2));
  const points = value => series.map((r, i) => [i, value(by(r.outcomes), r), `${r.name}\n${clock(r.last_ms)}`]),
    shown = series.length > 1;
  const axis = { label: t('run, oldest first'), ticks: series.map((_, i) => i).filter(i => series.length < 12
    || i % Math.ceil(series.length / 12) === 0), format: i => series[i].name.slice(-12) };
  return [shown && el('div', { class: 'split' }, lines({ title: t('Failed cases by run'), x: axis, y: {}, dots: true,
    series: [{ name: t('failed'), kind: 'fail', points: points(o => o.failed) }] }),
    lines({ title: t('Pass rate by run, of the judged cases'), x: axis, y: { format: v => `${v.toFixed(2)}%` },
      zero: false, dots: true, series: [{ name: t('Pass rate'), kind: 'pass',
      points: points(o => 100 * o.good / (o.judged || 1)) }] }),
    lines({ title: t('Duration by run, minutes'), x: axis, y: {}, dots: true, series: [{ name: t('Duration'),
      kind: 'accent', points: points((_, r) => r.duration_ms / 60000 || NaN) }] })),
  el('h2', null, t('Runs')), el('p', { class: 'soft' },
    t('Runs beside this one with the same mode, lanes and device. The charts leave out runs with less than half or more than twice as many cases.')),
  runsTable([...run.runs].reverse()), nested && el('p', null, el('a', { href: '../../' }, t('All runs')))];
}

function tolerances() {
  const of = run.tolerances;
  return [el('h2', null, t('Smallest passing tolerances')), plainTable(['API', t('dtype'), t('direction'),
    t('tensors'), ...of.rtols.map(r => `atol, rtol ${r}`)],
    of.rows.map(([api, dtype, way, n, atols]) => [api, dtype, way, number(n), ...atols]),
      [3, ...of.rtols.map((_, i) => i + 4)])];
}

function scorecard() {
  return [el('h2', null, t('Operators of PyTorch')), plainTable([t('Operators'), t('Right'), t('Wrong'),
    t('No kernel'), t('Not judged'), t('No case')], run.scorecard.map(r => r.map((c, i) => i ? number(c) : c)),
  [1, 2, 3, 4, 5])];
}

// ---- the page ----

const VIEWS = { findings, cases, apis, values: regimes, time: times, unjudged, history: past, tolerances, scorecard };
let drawn = '';

function show(changed) {
  if (!run?.outcomes) return;
  const list = [['findings', t('Findings'), run.findings.length], ['cases', t('Cases'), run.listed],
    ['apis', t('APIs')], ['values', t('Value regimes')],
    ['time', t('Time')], ['unjudged', t('Not judged'), by(run.outcomes).without], run.runs
      && ['history', t('History')], run.tolerances && ['tolerances', t('Tolerances')],
  run.scorecard && ['scorecard', t('Scorecard')]].filter(Boolean);
  const now = views(list), shown = `${now} ${JSON.stringify(changed)}`;
  const flat = !['findings', 'cases', 'apis'].includes(now);
  if (flat && shown === drawn) return;  // nothing that it shows is new
  drawn = shown;
  if (flat) { Table.shown = null; fill(at('main'), VIEWS[now]()); } else VIEWS[now]();
}

function put(data) {
  run = data;
  if (run.nights?.length) return nights();
  if (run.planned === undefined) return;
  head();
  show([run.read, run.runs?.length]);
}

// Reads the list of cases by parts; reads a part again after it has grown.
async function readCases(bytesOf) {
  if (begun !== run.begun) { begun = run.begun; parts = []; }
  const count = Math.ceil(run.listed / run.of_part);
  for (let i = 0; i < count; ++i) {
    const full = Math.min(run.of_part, run.listed - i * run.of_part);
    if (parts[i]?.id.length >= full) continue;
    parts[i] = await bytesOf(i);
    if ((i === 0 || i + 1 === count) && state.get('view') === 'cases') show();
  }
}

async function asked(name) {
  const reply = await fetch(name, { cache: 'no-store' });
  if (!reply.ok) throw new Error(await reply.text());
  return reply;
}

async function ask() {
  try {
    put(await (await asked('data.json')).json());
    if (run.listed !== undefined) await readCases(async i => unpack(await (await asked(`cases/${i}`)).arrayBuffer()));
  } catch (error) {
    trouble(`assay serve: ${error.message}`);
  }
  setTimeout(ask, (run?.planned ?? run?.nights) !== undefined ? EVERY_MS : FIRST_MS);
}

async function showInside() {
  try {
    put(await inside(at('data')));
    await new Promise(painted => requestAnimationFrame(() => setTimeout(painted)));
    const elements = document.getElementsByClassName('cases');
    await readCases(i => inside(elements[i]));
  } catch (error) {
    trouble(t('This browser cannot read the data of the page: {}', error.message));
  }
}

addEventListener('hashchange', () => show(Math.random()));
if (at('data')) showInside(); else ask();
