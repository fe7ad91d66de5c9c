// A sortable table that draws only the rows in view, so that it holds 300,000. One row may be open.
import { at, el, empty, fill, number, state, t } from './kit.js';

const NARROW = matchMedia('(max-width: 640px)');
const AROUND = 12;  // rows drawn above and below the window

export class Table {
  // columns: {key, title, cell(row), value(row) to sort by, number, wide, width}; the first one opens the row.
  // id(row) names a row in the address; open(row) gives the elements of an open one.
  constructor({ columns, id, open, none, label }) {
    Object.assign(this, { columns, id, open, rows: [], first: 0, end: 0, drawn: new Map(), focus: -1, tall: 0 });
    this.none = none || [t('Nothing matches'), ''];
    const heads = columns.map(c => el('th', { scope: 'col', class: this.classOf(c) },
      c.value ? el('button', { class: 'sort', type: 'button', 'data-key': c.key, click: () => this.sortBy(c) },
        c.title) : c.title));
    this.body = el('tbody');
    this.table = el('table', { class: 'list', 'aria-label': label },
      el('colgroup', null, columns.map(c => el('col', { class: c.wide && 'wide', 'data-width': c.width }))),
      el('thead', null, el('tr', null, heads)), this.body);
    for (const col of this.table.querySelectorAll('col[data-width]')) col.style.width = col.dataset.width;
    this.space = [0, 1].map(() => el('tr', { class: 'space', 'aria-hidden': 'true' }, el('td')));
    this.element = el('div', null, this.table);
    this.watch = new ResizeObserver(() => this.measure());
    Table.shown = this;
  }

  classOf(column) {
    return [column.number && 'number', column.wide && 'wide'].filter(Boolean).join(' ') || null;
  }

  get height() { return NARROW.matches ? 65 : 41; }

  // The number of columns in view.
  get across() { return this.columns.filter(c => !NARROW.matches || !c.wide).length; }

  // Shows these rows, in the address' order, and the row that the address opens.
  show(rows) {
    this.rows = rows;
    const [, key, way] = state.get('sort').match(/^([^-]+)(-?)$/) || [];
    const column = this.columns.find(c => c.key === key && c.value);
    if (column) {
      const sign = way ? -1 : 1, value = column.value;
      this.rows = rows.slice().sort((a, b) => { const x = value(a), y = value(b); return x < y ? -sign : x > y
        ? sign : 0; });
    }
    for (const button of this.table.querySelectorAll('.sort')) {
      const on = column && button.dataset.key === key;
      button.dataset.way = on ? (way ? -1 : 1) : 0;
      button.parentNode.setAttribute('aria-sort', on ? (way ? 'descending' : 'ascending') : 'none');
    }
    this.table.setAttribute('aria-rowcount', rows.length + 1);
    this.table.hidden = !rows.length;
    this.element.querySelector('.empty')?.remove();
    if (!rows.length) this.element.append(empty(...this.none));
    const wanted = this.open && state.get('open');
    this.opened = wanted ? this.rows.findIndex(r => this.id(r) === wanted) : -1;
    this.clear();
    this.draw();
    if (this.opened >= 0 && this.jumped !== wanted) this.reveal(this.opened);
    this.jumped = wanted;
    return this;
  }

  sortBy(column) {
    const now = state.get('sort'), down = `${column.key}-`;
    const [one, two] = column.number ? [down, column.key] : [column.key, down];
    state.set({ sort: now === one ? two : now === two ? '' : one });
  }

  clear() {
    this.drawn.clear();
    this.detail = null;
    this.tall = 0;
    for (const row of this.space) row.firstChild.colSpan = this.across;
    this.body.replaceChildren(...this.space);
  }

  top(index) { return index * this.height + (this.opened >= 0 && index > this.opened ? this.tall : 0); }

  // Draws the rows of the window, and removes the others.
  draw(all) {
    if (!this.element.isConnected && this.drawn.size) return;
    const begin = this.body.getBoundingClientRect().top, height = this.height;
    const shift = y => (this.opened >= 0 && y > this.top(this.opened) + height ? Math.max(y - this.tall,
      this.top(this.opened)) : y);
    const around = all ? 500 : AROUND;
    this.first = Math.max(0, Math.min(this.rows.length, Math.floor(shift(-begin) / height) - around));
    this.end = Math.min(this.rows.length, Math.ceil(shift(innerHeight - begin) / height) + around);
    if (this.end < this.first) this.end = this.first;
    for (const [index, row] of this.drawn) {
      if (index < this.first || index >= this.end) { row.remove(); this.drawn.delete(index); }
    }
    if (this.detail && !this.drawn.has(this.opened)) { this.detail.remove(); this.detail = null; }
    let after = this.space[0];
    for (let index = this.first; index < this.end; ++index) {
      let row = this.drawn.get(index);
      if (!row) {
        row = this.make(index);
        this.drawn.set(index, row);
        after.after(row);
      }
      after = row;
      if (index === this.opened) after = this.drawDetail(row);
    }
    this.space[0].firstChild.style.height = `${this.top(this.first)}px`;
    this.space[1].firstChild.style.height = `${this.top(this.rows.length) - this.top(this.end)}px`;
  }

  drawDetail(row) {
    if (!this.detail) {
      const cell = el('td', { colspan: this.across }, this.open(this.rows[this.opened]));
      this.detail = el('tr', { class: 'detail' }, cell);
      row.after(this.detail);
      this.watch.disconnect();
      this.watch.observe(cell);
      this.tall = this.detail.offsetHeight;
    }
    return this.detail;
  }

  measure() {
    if (!this.detail || this.tall === this.detail.offsetHeight) return;
    this.tall = this.detail.offsetHeight;
    this.draw();
  }

  make(index) {
    const row = this.rows[index];
    const cells = this.columns.map((column, place) => {
      const shown = column.cell(row);
      const inner = place || !this.open ? shown : el('button', { class: 'opener', type: 'button',
        'aria-expanded': String(index === this.opened), focus: () => { this.focus = index; } }, shown);
      const cell = el(place ? 'td' : 'th', { class: this.classOf(column), scope: place ? null : 'row' }, inner);
      if (column.title && typeof shown === 'string' && shown.length > 24) cell.title = shown;
      return cell;
    });
    return el('tr', { class: this.open && 'item', 'aria-rowindex': index + 2,
      click: this.open && (() => { if (!String(getSelection())) this.toggle(index); }) }, cells);
  }

  toggle(index) {
    const closing = this.opened === index;
    this.opened = closing ? -1 : index;
    this.jumped = closing ? '' : this.id(this.rows[index]);
    state.set({ open: this.jumped }, true);
    this.clear();
    this.draw();
    this.drawn.get(index)?.querySelector('.opener').focus({ preventScroll: true });
  }

  reveal(index) {
    const y = this.body.getBoundingClientRect().top + scrollY + this.top(index);
    if (y < scrollY + 96 || y > scrollY + innerHeight - 2 * this.height) scrollTo(0, y - innerHeight / 3);
    this.draw();
  }

  // Moves the focus by so many rows.
  move(by) {
    if (!this.rows.length) return;
    this.focus = Math.max(0, Math.min(this.rows.length - 1, this.focus + by));
    this.reveal(this.focus);
    this.drawn.get(this.focus)?.querySelector('.opener').focus({ preventScroll: true });
  }
}

addEventListener('scroll', () => Table.shown?.draw(), { passive: true });
addEventListener('resize', () => Table.shown?.draw());
NARROW.addEventListener('change', () => { Table.shown?.clear(); Table.shown?.draw(); });
addEventListener('beforeprint', () => Table.shown?.draw(true));
addEventListener('keydown', event => {
  if (event.ctrlKey || event.metaKey || event.altKey || /INPUT|SELECT|TEXTAREA/.test(event.target.tagName)) return;
  const table = Table.shown;
  if (!table?.element.isConnected || !table.open || !'jk'.includes(event.key)) return;
  table.move(event.key === 'j' ? 1 : -1);
  event.preventDefault();
});

// A small table, all of whose rows are drawn. A cell is a text or an element; `numbers`: indices of columns.
export function plainTable(head, rows, numbers = []) {
  const cell = (tag, c, i) => el(tag, { class: numbers.includes(i) && 'number', scope: tag === 'th' && 'col' }, c);
  return el('div', { class: 'scroll', tabindex: '0', role: 'group',
    'aria-label': head.filter(h => typeof h === 'string').join(', ') },
    el('table', null, el('thead', null, el('tr', null, head.map((c, i) => cell('th', c, i)))),
      el('tbody', null, rows.map(row => el('tr', null, row.map((c, i) => cell('td', c, i)))))));
}

// Filters above a table of the view `key`. The table stays while only its rows change, and typing goes on.
let kept = { key: '' };
export function listed({ filters, rows, key, make }) {
  if (kept.key !== key || !kept.table.element.isConnected) kept = { key, table: make() };
  Table.shown = kept.table;
  const count = el('span', { class: 'count', role: 'status' }, t('{} shown', number(rows.length)));
  const bar = el('div', { class: 'filters' }, filters, count), shown = filters.flat().filter(Boolean);
  bar.hidden = !shown.length || (!rows.length && !['q', 'state', 'outcome'].some(k => state.get(k)));
  if (document.activeElement?.matches?.('[data-search]') && kept.table.element.isConnected) {
    at('main').querySelector('.filters .count').replaceWith(count);
    const old = [...at('main').querySelectorAll('.filters .chip')];
    bar.querySelectorAll('.chip').forEach((chip, i) => old[i]?.replaceWith(chip));
  } else fill(at('main'), bar, kept.table.element);
  kept.table.show(rows);
}
