// Elements, state in the address, keyboard, words. No text ever becomes markup.
import { WORDS } from './words.js';

export const at = id => document.getElementById(id);
export const number = new Intl.NumberFormat('en-US').format;

// An element: attributes (functions are listeners), then children (elements, texts, lists; null is nothing).
export function el(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (typeof value === 'function') made.addEventListener(name, value);
    else if (value === true) made.setAttribute(name, '');
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(name, value);
  }
  made.append(...children.flat(9).filter(c => c !== null && c !== undefined && c !== false));
  return made;
}

export const fill = (element, ...children) => element.replaceChildren(...el('div', null, ...children).childNodes);

// The page's words: English, or Chinese where the browser's first language is Chinese.
const chinese = /^zh/i.test(navigator.language);
export function t(text, ...values) {
  let next = 0;
  return ((chinese && WORDS[text]) || text).replace(/\{\}/g, () => values[next++]);
}
export const plural = (count, one, many = `${one}s`) => t(`{} ${count === 1 ? one : many}`, number(count));

export function duration(seconds) {
  const days = Math.floor(seconds / 86400), hours = Math.floor(seconds / 3600) % 24;
  const minutes = Math.floor(seconds / 60) % 60;
  if (days) return `${days} d ${hours} h`;
  if (hours) return `${hours} h ${minutes} min`;
  return minutes ? `${minutes} min` : seconds < 10 ? `${+seconds.toPrecision(2)} s` : `${Math.round(seconds)} s`;
}
// A time that is known to the minute.
export const lasted = ms => (ms > 60000 ? duration(ms / 1000) : t('under 1 min'));
export const clock = ms => (ms > 0 ? new Date(ms).toLocaleString(chinese ? 'zh-CN' : 'en-GB',
  { year: 'numeric', month: 'short', day: 'numeric', hour: '2-digit', minute: '2-digit' }).replaceAll(' ', '\u00a0') : '');
export const percent = (part, all) => (all ? `${(Math.floor(10000 * part / all) / 100).toFixed(2)}%` : '–');
// Nanoseconds with a unit.
export function span(ns, digits = 4) {
  const [by, unit] = ns >= 1e9 ? [1e9, 's'] : ns >= 1e6 ? [1e6, 'ms'] : ns >= 1e3 ? [1e3, 'µs'] : [1, 'ns'];
  return ns ? `${number(+(ns / by).toPrecision(digits))} ${unit}` : '0';
}
export const share = (part, all) => (all > 0 ? `${(100 * part / all).toFixed(1)}%` : '–');
export const median = list => [...list].sort((a, b) => a - b)[Math.floor(list.length / 2)] || 0;
export const signed = (value, digits) => { const text = Math.abs(value).toFixed(digits);
  return `${Number(text) ? (value < 0 ? '−' : '+') : ''}${text}`; };
export const shellWord = text => (/^[\w\-+./:=@%,]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);

// A meaning has a class, for its colour, and a symbol, so that colour alone says nothing.
const SYMBOLS = { fail: '✕', new: '▲', pass: '✓', known: '●', flaky: '≈', none: '○', accent: '▶' };
export const mark = (kind, ...children) => el('span', { class: `mark ${kind}` },
  el('span', { 'aria-hidden': 'true' }, SYMBOLS[kind.split(' ')[0]] || ''), children.length ? ' ' : '', children);

// State in the address: every filter, view and open row is a link.
export const state = {
  get: key => new URLSearchParams(location.hash.slice(1)).get(key) || '',
  link(changes) {
    const all = new URLSearchParams(location.hash.slice(1));
    for (const [key, value] of Object.entries(changes)) value ? all.set(key, value) : all.delete(key);
    return `#${all}`;
  },
  // `silently`: the caller has shown the change already.
  set(changes, silently) {
    history.replaceState(null, '', state.link(changes));
    if (!silently) dispatchEvent(new HashChangeEvent('hashchange'));
  },
};

let toasting = null;
export function toast(text) {
  clearTimeout(toasting);
  fill(at('toast'), el('div', { class: 'toast' }, text));
  toasting = setTimeout(() => at('toast').replaceChildren(), 2000);
}

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {  // a file:// page, or an old browser
    const area = el('textarea', { 'aria-hidden': 'true', class: 'skip' });
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand('copy');
    area.remove();
  }
  toast(t('Copied'));
}
export const copyButton = (text, label = t('Copy')) =>
  el('button', { class: 'plain', type: 'button', click: event => { event.stopPropagation(); copy(text); } }, label);

// A text in monospace with a button that copies it. Lines that match `error` stand out. One without a title keeps its lines on a phone too.
export function code(title, text, error) {
  const lines = error ? text.split('\n').flatMap(l => [error.test(l) ? el('mark', null, l) : l, '\n'])
    : text?.split(/(--[\w-]+)/).map((part, i) => (i % 2 ? el('span', { class: 'mark' }, part) : part));  // an option is one word
  return text ? el('div', null, title && el('h2', { class: 'minor' }, title),
    el('div', { class: `code ${title && 'wrap'}` }, el('pre', { tabindex: '0', 'aria-label': title || t('Code') }, lines),
      copyButton(text))) : null;
}

export const facts = rows => el('dl', { class: 'facts' }, rows.map(([k, v]) => [el('dt', null, k), el('dd', null, v)]));
const tiles = list => el('dl', { class: 'tiles' }, list.filter(Boolean).map(([name, value, more]) =>
  el('div', null, el('dt', null, name), el('dd', null, value, more && ' ', more && el('small', null, more)))));
// What fails or slows, why, and what to do now: the first lines of a page.
export const answerList = list => list.some(Boolean) && el('ul', { class: 'answers' }, list.filter(Boolean).map(a => el('li', null, a)));
export const empty = (title, text) => el('div', { class: 'empty' }, el('b', null, title), text);

// Chips of [value, label]: at most one is pressed, and the address keeps it.
export function chips(key, choices) {
  const now = state.get(key);
  return choices.length > 0 && el('span', { class: 'group', role: 'group' }, choices.map(([value, ...label]) => el('button',
    { class: 'chip', type: 'button', 'aria-pressed': String(now === value),
    click: () => state.set({ [key]: now === value ? '' : value, open: '' }) }, label)));
}

// A field whose text the address keeps. "/" goes to the first one of the page.
export function search(key, label) {
  const text = `${t('Search')} ${label}`;
  const field = el('input', { type: 'search', placeholder: text, 'aria-label': text, 'data-search': true });
  field.value = state.get(key);
  let typing = null;
  field.addEventListener('input', () => {
    clearTimeout(typing);
    typing = setTimeout(() => state.set({ [key]: field.value }), 150);
  });
  return field;
}

// The head of a page: where it is from, the verdict, a line about it, figures; `above` and `below` the figures.
export function header({ where, verdict, line, above, numbers, below }) {
  fill(at('head'), el('div', { class: 'bar-top' }, el('span', null, where), el('button', { class: 'plain',
    type: 'button', 'aria-label': t('Keyboard'), click: help }, '?')), el('h1', null, verdict),
    line && el('p', { class: 'soft' }, line), above, tiles(numbers), below);
  document.title = `${at('head').querySelector('h1').textContent} · ${where}`;
}

// Links to the views of the page; the first one is shown without a name in the address.
export function views(list) {
  const now = list.some(([name]) => name === state.get('view')) ? state.get('view') : list[0][0];
  const links = list.map(([name, label, count]) => el('li', null, el('a',
    { href: `#${name === list[0][0] ? '' : `view=${name}`}`, 'aria-current': name === now && 'page' },
    label, count !== undefined && ' ', count !== undefined && el('span', { class: 'soft small' }, number(count)))));
  fill(at('views'), el('ul', null, links));
  const bar = at('views').firstChild, current = bar.querySelector('[aria-current]');
  if (current.offsetLeft + current.offsetWidth > bar.clientWidth) bar.scrollLeft = current.offsetLeft - 16;
  return now;
}

export function tip(event, text) {
  let box = document.querySelector('.tip');
  if (!text) return box && box.remove();
  if (!box) document.body.append(box = el('div', { class: 'tip' }));
  box.textContent = text;
  const wide = box.offsetWidth, left = Math.min(event.clientX + 12, innerWidth - wide - 8);
  box.style.left = `${Math.max(8, left)}px`;
  box.style.top = `${event.clientY + box.offsetHeight + 24 > innerHeight ? event.clientY - box.offsetHeight - 8 : event.clientY + 16}px`;
}

export const KEYS = [['/', 'Search'], ['j  k', 'Next and previous row'], ['Enter', 'Open or close a row'],
  ['?', 'This help']];
function help() {
  const dialog = el('dialog', { 'aria-label': t('Keyboard') }, el('h2', null, t('Keyboard')),
    facts(KEYS.map(([key, what]) => [el('kbd', null, key), t(what)])),
    el('form', { method: 'dialog' }, el('button', { class: 'plain' }, t('Close'))));
  dialog.addEventListener('close', () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

addEventListener('keydown', event => {
  if (event.ctrlKey || event.metaKey || event.altKey || /INPUT|SELECT|TEXTAREA/.test(event.target.tagName)) return;
  if (event.key === '/') document.querySelector('[data-search]')?.focus();
  else if (event.key === '?') help();
  else return;
  event.preventDefault();
});

// The data inside a file: JSON, packed by gzip, in base64.
// A small one stands there as text.
export const inside = async element => (element.type === 'application/json'
  ? JSON.parse(element.textContent) : unpack(Uint8Array.from(atob(element.textContent), c => c.charCodeAt(0))));
export async function unpack(bytes) {
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'))).json();
}
document.documentElement.lang = chinese ? 'zh-CN' : 'en';
