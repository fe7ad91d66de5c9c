'use strict';
// What `assay serve` knows of a run, asked for again and again; shown as it comes.

const EVERY_MS = 2000, FIRST_MS = 150;  // until there is something to show
const SHOWN_STAGES = 40;
const number = d3.format(',');
const GOOD = ['pass', 'rejected'];
let last = null;

function duration(seconds) {
  const days = Math.floor(seconds / 86400), hours = Math.floor(seconds / 3600) % 24;
  const minutes = Math.floor(seconds / 60) % 60;
  if (days) return `${days} d ${hours} h`;
  return hours ? `${hours} h ${minutes} min` : minutes ? `${minutes} min` : `${Math.ceil(seconds)} s`;
}

// Rows of a table: each cell a text, or {text, name} with a class.
function fill(table, head, rows) {
  const cells = row => row.map(c => (typeof c === 'object' ? c : { text: c }));
  const all = d3.select(table).selectAll('tr').data([head, ...rows]);
  all.enter().append('tr');
  all.exit().remove();
  const cell = all.selectAll('td').data(cells);
  cell.enter().append('td');
  cell.exit().remove();
  cell.text(c => c.text).attr('class', c => c.name || null);
}

function rate(outcomes) {
  let all = 0, good = 0;
  for (const [outcome, count] of Object.entries(outcomes)) {
    all += count;
    if (GOOD.includes(outcome)) good += count;
  }
  return { all, text: all ? `${(Math.floor(1000 * good / all) / 10).toFixed(1)}%` : '' };
}

function others(outcomes) {
  return Object.entries(outcomes).filter(([o]) => o !== 'pass').map(([o, n]) => `${number(n)} ${o}`).join(', ');
}

function showProgress(run) {
  const done = run.planned - run.unfinished;
  const share = run.planned ? done / run.planned : 0;
  document.getElementById('done').style.width = `${100 * share}%`;
  const parts = [`${number(done)} of ${number(run.planned)} cases (${(100 * share).toFixed(1)}%)`];
  if (run.rate !== undefined) parts.push(`${run.rate.toFixed(run.rate < 10 ? 1 : 0)} cases/s`);
  if (run.eta_s !== undefined && run.unfinished) parts.push(`${duration(run.eta_s)} left`);
  if (run.failed !== undefined) parts.push(`${number(run.failed)} failed`);
  if (run.reading) parts.push(`reading what was there: ${number(run.read)} cases so far`);
  document.getElementById('progress').textContent = parts.join(' · ');
  document.title = `${(100 * share).toFixed(0)}% assay`;
  const facts = run.properties || {};
  document.getElementById('what').textContent = [facts.mode, facts['version.assay']].filter(Boolean).join(' ');
  document.getElementById('facts').textContent = Object.entries(facts).map(([k, v]) => `${k} ${v}`).join(' · ');
}

function showHistory(history) {
  const svg = d3.select('#history'), width = 1100, height = 200, left = 60, bottom = 25;
  svg.selectAll('*').remove();
  if (!history.length) return;
  // A point alone is no line.
  const points = history.length > 1 ? history : [[history[0][0] - 60000, 0, 0], history[0]];
  const x = d3.time.scale().domain(d3.extent(points, p => p[0])).range([left, width - 10]);
  const y = d3.scale.linear().domain([0, d3.max(points, p => p[1])]).nice().range([height - bottom, 8]);
  const line = column => d3.svg.line().x(p => x(p[0])).y(p => y(p[column]));
  svg.append('path').datum(points).attr('class', 'all').attr('d', line(1));
  svg.append('path').datum(points).attr('class', 'bad').attr('d', line(2));
  svg.append('g').attr('class', 'axis').attr('transform', `translate(0,${height - bottom})`)
    .call(d3.svg.axis().scale(x).orient('bottom').ticks(8));
  svg.append('g').attr('class', 'axis').attr('transform', `translate(${left},0)`)
    .call(d3.svg.axis().scale(y).orient('left').ticks(5));
}

function showStages(apis, stages) {
  const costly = apis.filter(a => d3.sum(a.stage_ms) > 0).sort((a, b) => b.seconds - a.seconds).slice(0, SHOWN_STAGES);
  const rowHeight = 18, left = 320, width = 150;
  const svg = d3.select('#stages').attr('height', (costly.length + 1) * rowHeight + 4);
  svg.selectAll('*').remove();
  const most = d3.max(costly, a => d3.max(a.stage_ms)) || 1;
  const colour = d3.scale.pow().exponent(0.4).domain([0, most]).range(['#27864b22', '#c0392b']);
  const alpha = d3.scale.pow().exponent(0.4).domain([0, most]).range([0.05, 0.9]);
  stages.forEach((stage, i) => svg.append('text').attr('x', left + i * width + 6).attr('y', 13).text(stage));
  costly.forEach((api, row) => {
    const y = (row + 1) * rowHeight;
    svg.append('text').attr('x', 0).attr('y', y + 13).text(api.api);
    api.stage_ms.forEach((ms, i) => {
      svg.append('rect').attr('x', left + i * width).attr('y', y).attr('width', width - 2)
        .attr('height', rowHeight - 2).attr('fill', colour(most)).attr('fill-opacity', alpha(ms));
      svg.append('text').attr('x', left + i * width + 6).attr('y', y + 13).text(ms.toFixed(3));
    });
  });
}

function showFindings(findings) {
  const wanted = document.getElementById('find').value.toLowerCase();
  const shown = findings.filter(f => !wanted || `${f.api} ${f.outcome} ${f.where} ${f.how} ${f.message} ${f.text}`
    .toLowerCase().includes(wanted));
  document.getElementById('finding-count').textContent = `${number(shown.length)} shown`;
  fill('#findings', ['cases', 'outcome', 'API', 'where and how', 'the first of them', 'last seen'], shown.map(f => [
    { text: number(f.cases), name: 'n' }, { text: f.outcome, name: 'failed' }, f.api,
    f.how ? `${f.where}: ${f.how}` : f.where, `${f.text} ${f.message}`,
    { text: f.last_ms > 0 ? new Date(f.last_ms).toLocaleString() : '', name: 'soft' }]));
}

function show(run) {
  last = run;
  const trouble = document.getElementById('trouble');
  trouble.hidden = !run.trouble;
  trouble.textContent = run.trouble || '';
  if (run.planned === undefined) return;
  showProgress(run);
  if (run.outcomes === undefined) return;
  fill('#outcomes', ['outcome', { text: 'cases', name: 'n' }],
    Object.entries(run.outcomes).map(([o, n]) => [o, { text: number(n), name: 'n' }]));
  showFindings(run.findings);
  const rates = (list, key) => list.map(row => {
    const of = rate(row.outcomes);
    return [row[key], { text: of.text, name: 'n' }, { text: number(of.all), name: 'n' }, others(row.outcomes)];
  });
  const head = name => [name, { text: 'passed', name: 'n' }, { text: 'cases', name: 'n' }, 'others'];
  fill('#apis', head('API'), rates(run.apis, 'api'));
  fill('#dtypes', head('dtype'), rates(run.dtypes, 'dtype'));
  showHistory(run.history);
  showStages(run.apis, run.stages);
  const workers = run.workers || [];
  document.getElementById('worker-count').textContent =
    run.worker_count === undefined ? 'not known' : number(run.worker_count);
  fill('#workers', ['worker', { text: 'bundles', name: 'n' }, { text: 'cases', name: 'n' }, { text: 'lease', name: 'n' }],
    workers.map(w => [w.name, { text: number(w.bundles), name: 'n' }, { text: number(w.cases), name: 'n' },
      { text: `${w.seconds_left.toFixed(0)} s`, name: w.seconds_left < 0 ? 'n failed' : 'n' }]));
}

async function ask() {
  try {
    const reply = await fetch('data.json' + location.search, { cache: 'no-store' });
    if (!reply.ok) throw new Error(await reply.text());
    show(await reply.json());
  } catch (error) {
    const trouble = document.getElementById('trouble');
    trouble.hidden = false;
    trouble.textContent = `assay serve does not answer: ${error.message}`;
  }
  setTimeout(ask, last && last.planned !== undefined ? EVERY_MS : FIRST_MS);
}

document.getElementById('find').oninput = () => { if (last && last.findings) showFindings(last.findings); };
ask();
