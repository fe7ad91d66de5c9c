// The page of one chain (its stages and curves), or of a campaign (models × stages).
import { answerList, at, chips, clock, code, duration, el, empty, facts, fill, header, inside, mark, number, percent, search,
  signed, state, t, views } from './kit.js';
import { Table, listed, plainTable } from './table.js';
import { lines } from './charts.js';

const RELOAD_MS = 5000, ERROR = /error|exception|traceback|fatal|abort|segfault|killed|assert|errno|cannot|can't/i;
const CURVES = [['loss', 'Loss'], ['eval_loss', 'Loss of the evaluation'], ['accuracy', 'Accuracy'],
  ['ips', 'Samples per second'],
  ['batch_cost', 'Seconds per batch'], ['reader_cost', 'Seconds of the reader per batch'], ['rss_mb', 'Memory, MB'],
  ['gpu_memory_mb', 'GPU memory by the log, MB'], ['gpu_used_mb', 'GPU memory, MB']];
const NOT_FROM_ZERO = ['loss', 'eval_loss', 'accuracy'];  // an axis from zero would hide their change
let chain = null;

const kindOf = s => ({ passed: 'pass', unfinished: 'accent', running: 'accent', blocked: 'none', skipped: 'none',
  not_run: 'none' }[s] || 'fail');
const stateMark = s => mark(kindOf(s), t(s === 'unfinished' ? 'running' : s));
const shortName = s => s.name.split('/').at(-1);
// A stage's own name, then the path before it where there is room.
const stageName = s => el('span', { title: s.name }, shortName(s), el('span', { class: 'soft wide' },
  `  ${s.name.slice(0, -shortName(s).length - 1)}`));
// A message without the folders of its paths, for a cell; the cell's title has all of it.
const brief = text => text.replace(/^\S+\/(\S+) failed: /, '$1: ')
  .replace(/(?<=^|[\s'"(])[.\w-]*(\/[^\s/:'"]+)+\/(?=[^\s/:'"])/g, '…/');
const reason = text => el('span', { title: text }, brief(text));
const count = (list, wanted) => list.filter(wanted).length;

// ---- one chain ----

function curves(stage) {
  const other = Object.keys(stage.readings).filter(name => /loss/.test(name)
    && !CURVES.some(([n]) => n === name)).map(n => [n, n]);
  const points = values => (values || []).map((v, i) => [i + 1, v === null ? NaN : v]);
  const drawn = name => [stage.readings[name], stage.before?.[name]].some(v => v?.length > 1);
  return [...CURVES, ...other].filter(([name]) => stage.readings[name] && drawn(name)).map(([name, title]) => {
    const before = stage.before?.[name], known = (before || []).filter(Number.isFinite);
    const golden = (chain.golden?.metrics || []).find(m => m.metric === `${stage.name}: ${name}`);
    const speed = ['ips', 'batch_cost'].includes(name) && known.length > 2;
    const band = golden && !/loss/.test(name) ? [golden.golden - golden.tolerance, golden.golden + golden.tolerance,
      t('Tolerance')] : speed && [known.reduce((a, b) => Math.min(a, b)), known.reduce((a, b) => Math.max(a, b)),
        t('range before')];
    return lines({ title: `${t(title)} · ${shortName(stage)}`, zero: !NOT_FROM_ZERO.includes(name)
      && !/loss/.test(name), x: { label: t('reading') }, y: {}, band: band || undefined,
      base: golden && !/loss/.test(name) ? [golden.golden, t('golden')] : undefined,
      series: [golden?.values?.length > 1 && { name: t('golden'), kind: 'flaky', points: points(golden.values) },
        ...(before ? [{ name: t('last run that passed'), kind: 'known', points: points(before) }] : []),
        { name: t('this run'), kind: 'accent', points: points(stage.readings[name]) }].filter(Boolean) });
  });
}

const MB = bytes => (bytes >= 1e6 ? `${number(+(bytes / 1e6).toFixed(1))} MB` : `${number(bytes)} B`);

function openStage(s) {
  return [s.detail && el('p', { class: s.state === 'passed' ? null : 'fail' }, s.detail),
    s.tail && code(t('End of the log'), s.tail.trimEnd(), s.state === 'passed' ? null : ERROR),
    s.log && facts([[t('Log'), s.log]]), code(t('Command'), s.command), el('div', { class: 'split' },
      el('div', null, el('h2', { class: 'minor' }, t('Resources')),
        facts([[t('Time'), duration(s.seconds)], s.rss_mb > 0 && [t('Peak memory'),
        `${number(Math.round(s.rss_mb))} MB`],
        s.gpu_mb > 0 && [t('Peak GPU memory'), `${number(Math.round(s.gpu_mb))} MB`], s.gpu_percent > 0
          && [t('GPU use'), `${Math.round(s.gpu_percent)}%`]].filter(Boolean)),
      Object.keys(s.autolog).length > 0 && [el('h2', { class: 'minor' }, 'AutoLog'), facts(Object.entries(s.autolog))]),
      s.files.length > 0 && el('div', null, el('h2', { class: 'minor' }, t('Files that it wrote')),
        facts(s.files.map(([path, size]) => [MB(size), path])))),
    s.nodes.length > 0 && plainTable([t('Machine'), t('Device'), t('Framework'), t('Batch'), t('State'), 'ips'],
      s.nodes, [5]), el('div', { class: 'split' }, curves(s))];
}

function oneChain() {
  const live = chain.exit_code < 0, seconds = chain.stages.reduce((n, s) => n + s.seconds, 0),
    failed = chain.stages.filter(s => kindOf(s.state) === 'fail');
  const passed = count(chain.stages, s => s.state === 'passed'), memory = chain.stages.reduce((m, s) => Math.max(m,
    s.rss_mb), 0), now = chain.stages.find(s => s.state === 'unfinished');
  const comparable = passed > 0 && chain.stages.every(s => s.state === 'passed' && s.seconds_before > 0);
  const over = seconds > chain.budget, worse = count(chain.golden?.metrics || [],
    m => ['regression', 'missing'].includes(m.state));
  const first = failed[0], error = first?.tail?.split('\n').findLast(l => ERROR.test(l));
  header({ where: `assay · ${chain.model} · ${chain.mode}`,
    above: answerList([...failed.slice(0, 3).map(s => [mark('fail'), ' ', el('a', { href: `#open=${encodeURIComponent(s.name)}` },
      shortName(s)), ` ${brief(s.detail)}`, s === first && error && !s.detail.includes(error.trim()) && [': ', el('code', null, brief(error.trim()))]]),
    first && code(t('Command'), first.command)]),
    verdict: [failed.length || worse ? mark('fail', t('fails')) : !live && passed > 0 && mark('pass', t('passes')), failed.length > 0 && mark('fail', `${number(failed.length)} ${t('failed')}`), worse > 0
      && mark('new', `${number(worse)} ${t('regression')}`), passed > 0 && mark('pass',
      t('{} of {} stages passed', passed, chain.stages.length)),
      !chain.stages.length && mark('none', t('No stage has run')), live && now && mark('accent', shortName(now))],
    line: [chain.file, clock(Date.parse(chain.started)), live ? t('not finished') : t('exit code {}', chain.exit_code),
      chain.before && t('compared with the run of {}', clock(Date.parse(chain.before)))].filter(Boolean).join(' · '),
    numbers: [[t('Time'), duration(seconds), comparable && t('was {}',
      duration(chain.stages.reduce((n, s) => n + s.seconds_before, 0)))], [t('Of the budget'), el('span', { class: over && 'fail' },
      percent(seconds, chain.budget)), over ? t('over budget') : t('of {}', duration(chain.budget))],
      memory > 0 && [t('Peak memory'), `${number(Math.round(memory))} MB`]] });
  const drawn = chain.stages.filter(s => curves(s).length);
  const view = views([['stages', t('Stages'), chain.stages.length], drawn.length
    && ['curves', t('Curves')], chain.golden && ['goldens', t('Goldens'), chain.golden.metrics.length]].filter(Boolean));
  if (view === 'curves') {
    Table.shown = null;
    return fill(at('main'), el('div', { class: 'split' }, drawn.flatMap(curves)));
  }
  if (view === 'goldens') return goldens();
  const change = s => (s.seconds_before > 0 && s.state === 'passed'
    ? `${signed(100 * (s.seconds / s.seconds_before - 1), 0)}%` : '');
  const columns = [{ key: 'name', title: t('Stage'), value: s => s.name, cell: s => el('span', null,
    mark(kindOf(s.state)), ' ', stageName(s), el('span', { class: 'under' },
    `${t(s.state === 'unfinished' ? 'running' : s.state)} · ${duration(s.seconds)}`)) },
    { key: 'state', title: t('State'), wide: true, width: '136px', value: s => s.state, cell: s => stateMark(s.state) },
    { key: 'seconds', title: t('Seconds'), number: true, wide: true, width: '96px', value: s => s.seconds,
      cell: s => s.seconds.toFixed(1) },
    chain.before && { key: 'change', title: t('Change'), number: true, wide: true, width: '88px',
      value: s => s.seconds / (s.seconds_before || Infinity), cell: change },
    { key: 'memory', title: 'MB', number: true, wide: true, width: '88px', value: s => s.rss_mb,
      cell: s => (s.rss_mb > 0 ? number(Math.round(s.rss_mb)) : '') },
    { key: 'detail', title: t('Detail'), wide: true, width: '36%', cell: s => reason(s.detail) }].filter(Boolean);
  const wanted = state.get('state'), states = [...new Set(chain.stages.map(s => s.state))];
  listed({ filters: [chips('state', states.length > 1
    ? states.map(s => [s, stateMark(s), ` ${count(chain.stages, x => x.state === s)}`]) : [])],
    rows: chain.stages.filter(s => !wanted || s.state === wanted), key: 'stages', make: () => new Table({
      label: t('Stages'), columns, id: s => s.name, open: openStage, none: [t('No stage has run'), ''] }) });
}

// Each measurement beside its golden record: those that are not good first.
const GOLDEN = { good: 'pass', improvement: 'pass', regression: 'fail', missing: 'fail', environment: 'known' };
function goldens() {
  Table.shown = null;
  const digits = v => v.toLocaleString('en-US', { maximumSignificantDigits: 5 }), bad = m => m.state !== 'good';
  const { metrics, file, runs } = chain.golden;
  const advised = metrics.some(bad), rows = [...metrics.filter(bad), ...metrics.filter(m => !bad(m))].map(m => {
    const at = m.metric.indexOf(': '), path = m.metric.slice(0, at);
    return [el('span', { title: path }, path.split('/').at(-1)), m.metric.slice(at + 2), mark(GOLDEN[m.state] || 'flaky',
      t(m.state)), digits(m.value), digits(m.golden), `± ${digits(m.tolerance)}`, number(m.nights), advised && m.advice];
  });
  fill(at('main'), el('p', { class: 'soft' }, t('{}: {} runs', file, runs)), plainTable([t('Stage'), t('Measurement'),
    t('Verdict'), t('Value'), t('Golden'), t('Tolerance'), t('Nights'), advised && t('What to do')].filter(Boolean),
    rows.map(r => (advised ? r : r.slice(0, -1))), [3, 4, 5, 6]));
}

// ---- a campaign ----

function cell(model, kind) {
  const all = model.stages.filter(s => s.kind === kind), bad = all.filter(s => s.state !== 'passed');
  if (!all.length) return '';
  const worst = bad.find(s => s.state !== 'blocked') || bad[0];
  const shown = mark(worst ? kindOf(worst.state) : 'pass', all.length > 1
    ? `${all.length - bad.length}/${all.length}` : '');
  shown.title = worst ? `${worst.name}: ${worst.state}${worst.detail ? `: ${worst.detail}` : ''}` : t('passed');
  return shown;
}

function openModel(model) {
  const page = model.log.replace(/[^/]*$/, ''), failures = chain.failures.filter(f => f.model === model.model);
  return [model.detail && !failures.length && el('p', { class: 'fail' }, model.detail), ...failures.map(f => el('p', null, mark(f.known ? 'known' : 'new',
      f.known ? t('known') : t('new')), ` ${[shortName({ name: f.stage }), f.state, f.detail, f.reason].filter(Boolean).join(' · ')}`)),
    plainTable([t('Stage'), t('State'), t('Seconds'), t('Detail')], model.stages.map(s => [stageName(s), stateMark(s.state),
      s.seconds.toFixed(1), s.detail]), [2]),
    facts([[t('Log'), el('a', { href: encodeURI(model.log) }, model.log)],
      [t('Folder'), el('a', { href: encodeURI(page) || '.' }, page || '.')], model.host && [t('Host'), model.host],
      [t('Tries'), model.tries]].filter(Boolean))];
}

function logOf(model) {
  const log = chain.models.find(m => m.model === model)?.log;
  return log && [' · ', el('a', { href: encodeURI(log) }, t('Log'))];
}

function campaign() {
  const fresh = chain.failures.filter(f => !f.known), known = chain.failures.length - fresh.length,
    passed = count(chain.models, m => m.state === 'passed');
  header({ where: `assay · ${chain.name}`, above: answerList(fresh.slice(0, 3).map(f => [mark('new'), ' ',
      el('a', { href: `#open=${encodeURIComponent(f.model)}` }, f.model), ` ${[shortName({ name: f.stage }), t(f.state), brief(f.detail)].filter(Boolean).join(': ')}`,
      logOf(f.model)])),
    verdict: [mark(fresh.length ? 'fail' : chain.interrupted ? 'none' : 'pass', t(fresh.length ? 'fails' : chain.interrupted
      ? 'not finished' : 'passes')), ...[['new', fresh.length, 'new'], ['known', known, 'known'],
    ['pass', chain.fixed.length, 'fixed']].filter(([, n]) => n).map(([kind, n, word]) => mark(kind,
    `${number(n)} ${t(word)}`))].concat(mark('pass', t('{} of {} models passed', number(passed),
    number(chain.models.length)))),
    line: chain.interrupted && t('interrupted'),
    numbers: [[t('Models'), number(chain.models.length)],
      [t('Stages'), number(chain.models.reduce((n, m) => n + m.stages.length, 0))],
      [t('Time'), duration(chain.models.reduce((n, m) => n + m.seconds, 0))]] });
  const view = views([['models', t('Models'), chain.models.length], ['failures', t('Failures'),
    chain.failures.length]]);
  const wanted = state.get('q').toLowerCase(), only = state.get('state');
  if (view === 'failures') {
    Table.shown = null;
    const reasons = chain.failures.some(f => f.reason), rows = [...fresh.map(f => ['new', f]), ...chain.failures.filter(f => f.known).map(f => ['known', f]),
      ...chain.fixed.map(f => ['fixed', f])];
    return fill(at('main'), rows.length ? plainTable([t('State'), t('Model'), t('Stage'), t('How'), ...(reasons
      ? [t('Known because')] : [])], rows.map(([k, f]) => [mark(k === 'fixed' ? 'pass' : k, t(k)), el('a',
      { href: `#open=${encodeURIComponent(f.model)}` }, f.model), f.stage, [f.state, f.detail].filter(Boolean).join(': '),
      ...(reasons ? [f.reason] : [])]))
      : empty(t('No failure'), ''));
  }
  const columns = [{ key: 'model', title: t('Model'), value: m => m.model, cell: m => el('span', null,
    mark(kindOf(m.state)), ' ', m.model, el('span', { class: 'under' },
    [t(m.state), brief(m.detail)].filter(Boolean).join(' · '))) },
    ...chain.kinds.map(k => ({ key: `kind ${k}`, title: k, wide: true, width: '80px', cell: m => cell(m, k) })),
    { key: 'why', title: t('Reason'), wide: true, width: '40%', value: m => m.detail, cell: m => reason(m.detail) },
    { key: 'seconds', title: t('Seconds'), number: true, wide: true, width: '88px', value: m => m.seconds,
      cell: m => m.seconds.toFixed(1) }];
  const rows = chain.models.filter(m => (!wanted || `${m.model} ${m.detail} ${m.host}`.toLowerCase().includes(wanted))
    && (!only || m.state === only));
  const states = [...new Set(chain.models.map(m => m.state))];
  listed({ filters: [search('q', t('model')), chips('state', states.length > 1
    ? states.map(s => [s, stateMark(s), ` ${number(count(chain.models, m => m.state === s))}`]) : []),
    chain.models.some(m => m.stages.some(s => kindOf(s.state) === 'none')) && el('span', { class: 'small' },
      mark('none', t('blocked or not run')))], rows: [...rows.filter(m => m.state !== 'passed'), ...rows.filter(m => m.state === 'passed')], key: 'models',
    make: () => new Table({ label: t('Models by stage'), columns, id: m => m.model, open: openModel }) });
}

const show = () => (chain.models ? campaign() : oneChain());
addEventListener('hashchange', show);
inside(at('data')).then(data => {
  chain = data;
  show();
  if (chain.exit_code < 0) setTimeout(() => location.reload(), RELOAD_MS);
});
