'use strict';
// Shows a run: polled from `assay serve`, or embedded into this file (report.html).

const EVERY_MS = 2000, FIRST_MS = 150;  // until there is something to show
const SHOWN_STAGES = 40, SHOWN_CASES = 200, TYPING_MS = 150;
const number = d3.format(',');
const GOOD = ['pass', 'rejected', 'same', 'fast'];
const at = id => document.getElementById(id);
let last = null;
let parts = [], begun = null, shownCases = SHOWN_CASES;  // of the list of cases

function duration(seconds) {
  const days = Math.floor(seconds / 86400), hours = Math.floor(seconds / 3600) % 24;
  const minutes = Math.floor(seconds / 60) % 60;
  if (days) return `${days} d ${hours} h`;
  return hours ? `${hours} h ${minutes} min` : minutes ? `${minutes} min` : `${Math.ceil(seconds)} s`;
}

// Fills a table. A cell is a text, or {text, name} with a CSS class.
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
  return { all, good, text: all ? `${(Math.floor(1000 * good / all) / 10).toFixed(1)}%` : '' };
}

function others(outcomes) {
  return Object.entries(outcomes).filter(([o]) => o !== 'pass').map(([o, n]) => `${number(n)} ${o}`).join(', ');
}

function showProgress(run) {
  const done = run.planned - run.unfinished;
  const share = run.planned ? done / run.planned : 0;
  at('done').style.width = `${100 * share}%`;
  const percent = Math.floor(1000 * share) / 10;  // 100 is the end
  const parts = [`${number(done)} of ${number(run.planned)} case${run.planned === 1 ? '' : 's'} (${percent.toFixed(1)}%)`];
  if (run.rate !== undefined) parts.push(`${run.rate.toFixed(run.rate < 10 ? 1 : 0)} cases/s`);
  if (run.eta_s !== undefined && run.unfinished) parts.push(`${duration(run.eta_s)} left`);
  if (run.failed !== undefined) parts.push(`${number(run.failed)} failed`);
  if (run.reading) parts.push(`reading earlier results: ${number(run.read)} cases so far`);
  at('progress').textContent = parts.join(' · ');
  document.title = `${Math.floor(percent)}% assay`;
  const facts = run.properties || {};
  at('what').textContent = [facts.mode, facts['version.assay']].filter(Boolean).join(' ');
  at('facts').textContent = Object.entries(facts).map(([k, v]) => `${k} ${v}`).join(' · ');
}

function showHistory(history) {
  const svg = d3.select('#history'), width = 1100, height = 200, left = 60, bottom = 25;
  svg.selectAll('*').remove();
  if (!history.length) return;
  // A line needs two points.
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

// Shortens a name at its start, because ends differ; the title has the whole name.
function cutName(text, name, room) {
  text.text(name).append('title').text(name);
  const length = text.node().firstChild.length, wide = text.node().getComputedTextLength();
  if (wide > room) text.node().firstChild.data = `…${name.slice(2 - Math.floor(length * room / wide))}`;
}

// A table of {name, cases, stage_ms}, with stage_ms by case; slower stages are darker.
function showHeat(id, what, rows, stages) {
  const rowHeight = 18, forName = 310, forNumber = 70, left = forName + 2 * forNumber + 10;
  const width = Math.floor((1100 - left) / stages.length);
  const svg = d3.select(id).attr('height', (rows.length + 1) * rowHeight + 4);
  svg.selectAll('*').remove();
  const write = (x, y, words) => svg.append('text').attr('x', x).attr('y', y + 13).text(words);
  const writeNumber = (column, y, words) =>
    write(forName + column * forNumber, y, words).attr('text-anchor', 'end');
  const most = d3.max(rows, r => d3.max(r.stage_ms)) || 1;
  const alpha = d3.scale.pow().exponent(0.4).domain([0, most]).range([0.05, 0.9]);
  write(0, 0, what);
  writeNumber(1, 0, 'cases');
  writeNumber(2, 0, 'seconds');
  stages.forEach((stage, i) => write(left + i * width + 6, 0, stage));
  rows.forEach((row, place) => {
    const y = (place + 1) * rowHeight;
    cutName(write(0, y, ''), row.name, forName);
    writeNumber(1, y, number(row.cases));
    writeNumber(2, y, d3.format(',.2f')(cost(row) / 1000));
    row.stage_ms.forEach((ms, i) => {
      svg.append('rect').attr('x', left + i * width).attr('y', y).attr('width', width - 2)
        .attr('height', rowHeight - 2).attr('fill', '#c0392b').attr('fill-opacity', alpha(ms));
      write(left + i * width + 6, y, ms.toFixed(3));
    });
  });
}

// Milliseconds of all cases of the row.
function cost(row) {
  return d3.sum(row.stage_ms) * row.cases;
}

function showStages(run) {
  const apis = run.apis.map(a => ({ name: a.api, cases: rate(a.outcomes).all, stage_ms: a.stage_ms }));
  const costly = apis.filter(a => cost(a) > 0).sort((a, b) => cost(b) - cost(a)).slice(0, SHOWN_STAGES);
  showHeat('#sizes', 'size', run.sizes.map(s => ({ name: s.size, cases: s.cases, stage_ms: s.stage_ms })), run.stages);
  showHeat('#stages', 'API', costly, run.stages);
}

function showFindings(findings) {
  const wanted = at('find').value.toLowerCase();
  const shown = findings.filter(f => !wanted || `${f.api} ${f.outcome} ${f.where} ${f.how} ${f.message} ${f.text}`
    .toLowerCase().includes(wanted));
  at('finding-count').textContent = `${number(shown.length)} shown`;
  fill('#findings', ['cases', 'outcome', 'API', 'where and how', 'first case', 'last seen'], shown.map(f => [
    { text: number(f.cases), name: 'n' }, { text: f.outcome, name: 'failed' }, f.api,
    [f.how ? `${f.where}: ${f.how}` : f.where, f.circumstances].filter(Boolean).join('; '),
    `${f.text} ${f.message}${f.inputs ? `; with ${f.inputs}` : ''}`,
    { text: f.last_ms > 0 ? new Date(f.last_ms).toLocaleString() : '', name: 'soft' }]));
}

function shellWord(text) {
  return /^[\w\-+./:=@%,]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

// Up to `most` matching cases of the list, and the number of matches.
function wantedCases(outcome, text, most) {
  const found = [];
  let count = 0;
  for (const part of parts) {
    if (!part) continue;
    for (let i = 0; i < part.id.length; ++i) {
      if (outcome && part.outcome[i] !== outcome) continue;
      if (text && !`${part.text[i]} ${part.message[i]} ${part.id[i]} ${part.kinds[i]}`.toLowerCase().includes(text)) continue;
      if (++count <= most) found.push([part, i]);
    }
  }
  return { found, count };
}

function showCases() {
  const run = last;
  const { found, count } = wantedCases(at('pick').value, at('find-case').value.toLowerCase(), shownCases);
  const read = d3.sum(parts, p => (p ? p.id.length : 0));
  at('case-count').textContent = [`${number(count)} found`, `${number(read)} of ${number(run.listed)} read`,
    run.left_out ? `${number(run.left_out)} more are not listed: assay report --list` : ''].filter(Boolean).join(' · ');
  const failed = Object.fromEntries(run.meanings.map(([outcome, is]) => [outcome, is]));
  fill('#cases', ['outcome', 'case, message and command to rerun it'], found.map(([p, i]) => [
    { text: [p.outcome[i], p.kinds[i], p.lane[i], p.flags[i]].filter(Boolean).join('\n'), name: failed[p.outcome[i]] ? 'failed lines' : 'lines' },
    { text: [p.text[i], p.message[i], p.id[i] ? `id ${p.id[i]}` : '',
      p.id[i] ? run.rerun.replace('--api_config=@', () => `--api_config=${shellWord(p.text[i])}`) : ''].filter(Boolean).join('\n'), name: 'lines' }]));
  at('more-cases').hidden = count <= shownCases;
}

function showRuns(runs) {
  at('runs-part').hidden = !runs || runs.length < 2;
  if (at('runs-part').hidden) return;
  fill('#runs', ['run', 'last result', { text: 'passed', name: 'n' }, { text: 'cases', name: 'n' }, 'others', 'build'], runs.map(r => {
    const of = rate(r.outcomes);
    return [r.sampled ? `${r.name} (a sample of it)` : r.name, r.last_ms ? new Date(r.last_ms).toLocaleString() : '', { text: of.text, name: 'n' },
      { text: number(of.all), name: 'n' }, others(r.outcomes), { text: r.build, name: 'soft' }];
  }));
  const svg = d3.select('#runs-chart'), left = 60, height = 160, bottom = 20;
  svg.selectAll('*').remove();
  const step = Math.min(120, (1090 - left) / runs.length);
  const y = d3.scale.linear().domain([0, 1]).range([height - bottom, 8]);
  svg.append('g').attr('class', 'axis').attr('transform', `translate(${left},0)`)
    .call(d3.svg.axis().scale(y).orient('left').ticks(4, '%'));
  runs.forEach((r, i) => {
    const of = rate(r.outcomes), share = of.all ? of.good / of.all : 0;
    svg.append('rect').attr('class', 'run').attr('x', left + 4 + i * step).attr('width', step - 6)
      .attr('y', y(share)).attr('height', height - bottom - y(share)).append('title').text(`${r.name}: ${of.text}`);
    svg.append('text').attr('x', left + 6 + i * step).attr('y', height - 5).text(r.name.slice(-Math.floor(step / 7)));
  });
}

function showTolerances(tolerances) {
  at('tolerances-part').hidden = !tolerances;
  if (!tolerances) return;
  const n = text => ({ text, name: 'n' });
  fill('#tolerances', ['API', 'dtype', 'direction', n('tensors'), ...tolerances.rtols.map(r => n(`atol at rtol ${r}`))],
    tolerances.rows.map(([api, dtype, direction, count, atols]) => [api, dtype, direction, n(number(count)), ...atols.map(n)]));
}

// Draws each ratio as a dot and its interval as a line, on a scale from 1/4 to 4; clamps values outside.
function drawRatios(where, rows) {
  const width = 1100, height = 300, left = 46, y = d3.scale.log().domain([0.25, 4]).range([height - 10, 10]).clamp(true);
  const svg = d3.select(where);
  svg.selectAll('*').remove();
  for (const ratio of [0.25, 0.5, 1, 2, 4]) {
    svg.append('line').attr('class', 'grid').attr('x1', left).attr('x2', width).attr('y1', y(ratio)).attr('y2', y(ratio));
    svg.append('text').attr('x', left - 6).attr('y', y(ratio) + 4).attr('text-anchor', 'end').text(`${ratio}×`);
  }
  const step = (width - left) / rows.length;
  rows.forEach((row, i) => {
    const x = left + (i + 0.5) * step, [low, middle, high] = row.ratio;
    const part = svg.append('g').attr('class', `ratio ${row.speed}`);
    part.append('line').attr('x1', x).attr('x2', x).attr('y1', y(Math.max(low, 1e-9))).attr('y2', y(high));
    part.append('circle').attr('cx', x).attr('cy', y(middle)).attr('r', 2.2);
    part.append('title').text(`${row.case}: ${row.what} ${row.told}`);
  });
}

const speed = row => ({ text: row.speed || '', name: row.speed === 'slow' ? 'failed' : '' });

function showTimes(times) {
  at('times-part').hidden = !times;
  if (!times) return;
  at('times-count').textContent = number(times.parts);
  const n = text => ({ text, name: 'n' });
  const both = times.rows.some(row => row.reference);
  for (const element of document.querySelectorAll('.of-both')) element.toggleAttribute('hidden', !both);
  if (!both) {  // a single lane
    fill('#times', ['case', 'what', n('time')], times.rows.map(row => [row.case, row.what, n(row.test)]));
    return;
  }
  drawRatios('#ratios', times.rows.filter(row => row.decides));
  fill('#times', ['case', 'what', n('test lane'), n('reference lane'), 'test to reference', ''], times.rows.map(row =>
    [row.case, row.what, n(row.test), n(row.reference), row.told || '', speed(row)]));
}

function showAgainst(against) {
  at('against-part').hidden = !against;
  if (!against) return;
  at('against').textContent = against.table;
  at('changed-part').hidden = !against.rows.length;
  if (!against.rows.length) return;
  const n = text => ({ text, name: 'n' });
  drawRatios('#changes', against.rows);
  fill('#changed', ['case', 'what', n('now'), n('then'), 'now to then', ''], against.rows.map(row =>
    [row.case, row.what, n(row.now), n(row.then), row.told, speed(row)]));
}

function showAccommodated(accommodated) {
  at('accommodated-part').hidden = !accommodated.rows.length;
  at('accommodated-count').textContent = number(accommodated.cases);
  fill('#accommodated', ['API', ''], accommodated.rows);
}

function showWorkers(run) {
  at('workers-part').hidden = run.worker_count === undefined;
  if (run.worker_count === undefined) return;
  at('worker-count').textContent = number(run.worker_count);
  fill('#workers', ['worker', { text: 'bundles', name: 'n' }, { text: 'cases', name: 'n' }, { text: 'lease', name: 'n' }],
    run.workers.map(w => [w.name, { text: number(w.bundles), name: 'n' }, { text: number(w.cases), name: 'n' },
      { text: `${w.seconds_left.toFixed(0)} s`, name: w.seconds_left < 0 ? 'n failed' : 'n' }]));
}

function showOutcomes(run) {
  const of = Object.fromEntries(run.meanings.map(([outcome, failed, meaning]) => [outcome, { failed, meaning }]));
  fill('#outcomes', ['outcome', { text: 'cases', name: 'n' }, ''], Object.entries(run.outcomes).map(([o, n]) =>
    [{ text: o, name: of[o].failed ? 'failed' : '' }, { text: number(n), name: 'n' }, { text: of[o].meaning, name: 'soft' }]));
  const known = new Set([...at('pick').options].map(o => o.value));
  for (const outcome of Object.keys(run.outcomes)) if (!known.has(outcome)) at('pick').add(new Option(outcome, outcome));
}

function show(run) {
  last = run;
  const trouble = at('trouble');
  trouble.hidden = !run.trouble;
  trouble.textContent = run.trouble || '';
  if (run.planned === undefined) return;
  showProgress(run);
  if (run.outcomes === undefined) return;
  showOutcomes(run);
  showFindings(run.findings);
  const rates = (list, key) => list.map(row => {
    const of = rate(row.outcomes);
    return [row[key], { text: of.text, name: 'n' }, { text: number(of.all), name: 'n' }, others(row.outcomes)];
  });
  const head = name => [name, { text: 'passed', name: 'n' }, { text: 'cases', name: 'n' }, 'others'];
  fill('#apis', head('API'), rates(run.apis, 'api'));
  fill('#dtypes', head('dtype'), rates(run.dtypes, 'dtype'));
  showHistory(run.history);
  showRuns(run.runs);
  showStages(run);
  showTolerances(run.tolerances);
  showTimes(run.times);
  showAgainst(run.against);
  showAccommodated(run.accommodated);
  showWorkers(run);
}

async function unpack(bytes) {
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'))).json();
}

// Reads the list of cases by parts; reads a part again after it has grown.
async function readCases(bytesOf) {
  if (begun !== last.begun) {  // the run was counted again
    begun = last.begun;
    parts = [];
    showCases();
  }
  for (let i = 0; i * last.of_part < last.listed; ++i) {
    const full = Math.min(last.of_part, last.listed - i * last.of_part);
    if (parts[i] && parts[i].id.length >= full) continue;
    parts[i] = await unpack(await bytesOf(i));
    if (i === 0 || (i + 1) * last.of_part >= last.listed) showCases();
  }
}

function showTrouble(text) {
  at('trouble').hidden = false;
  at('trouble').textContent = text;
}

async function asked(name) {
  const reply = await fetch(name, { cache: 'no-store' });
  if (!reply.ok) throw new Error(await reply.text());
  return reply;
}

async function ask() {
  try {
    show(await (await asked('data.json')).json());
    if (last.listed !== undefined) await readCases(async i => (await asked(`cases/${i}`)).arrayBuffer());
  } catch (error) {
    showTrouble(`assay serve: ${error.message}`);
  }
  setTimeout(ask, last && last.planned !== undefined ? EVERY_MS : FIRST_MS);
}

const bytesIn = element => Uint8Array.from(atob(element.textContent), c => c.charCodeAt(0));

async function showInside() {
  try {
    show(await unpack(bytesIn(at('data'))));
    const elements = document.getElementsByClassName('cases');
    await new Promise(painted => requestAnimationFrame(() => setTimeout(painted)));
    await readCases(async i => bytesIn(elements[i]));
  } catch (error) {
    showTrouble(`this browser cannot read the page's data: ${error.message}`);
  }
}

let typing = null;
function searchCases() {
  clearTimeout(typing);
  typing = setTimeout(() => {
    shownCases = SHOWN_CASES;
    if (last && last.meanings) showCases();
  }, TYPING_MS);
}
at('find-case').oninput = at('pick').onchange = searchCases;
at('more-cases').onclick = () => { shownCases *= 4; showCases(); };
at('find').oninput = () => { if (last && last.findings) showFindings(last.findings); };
if (at('data')) showInside(); else ask();
