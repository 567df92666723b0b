// What a person does with the page: pointers, keys, findings, tables.
'use strict';

const calm = matchMedia('(prefers-reduced-motion: reduce)');
const fingers = new Map();
let moved = 0, spread = 0;

function at(event) {
  const box = byId('canvas').getBoundingClientRect();
  return [event.clientX - box.left, event.clientY - box.top];
}

function apart() {
  const [one, other] = [...fingers.values()];
  return Math.max(8, Math.abs(one[0] - other[0]));
}

function pointers(canvas) {
  canvas.addEventListener('pointerdown', event => {
    fingers.set(event.pointerId, at(event));
    canvas.setPointerCapture(event.pointerId);
    moved = 0;
    if (fingers.size === 2) spread = apart();
  });
  canvas.addEventListener('pointermove', event => {
    const here = at(event), before = fingers.get(event.pointerId);
    if (!before) {
      showTip(...here);
      return;
    }
    fingers.set(event.pointerId, here);
    if (fingers.size === 2) {
      const now = apart();
      const middle = ([...fingers.values()][0][0] + [...fingers.values()][1][0]) / 2;
      zoom(spread / now, middle);
      spread = now;
      moved += 10;
    } else {
      moved += Math.abs(here[0] - before[0]);
      if (moved > 3) pan((before[0] - here[0]) / width());
    }
  });
  const end = event => {
    const tapped = fingers.size === 1 && moved <= 3 && event.type === 'pointerup';
    fingers.delete(event.pointerId);
    if (tapped) say(...at(event));
  };
  canvas.addEventListener('pointerup', end);
  canvas.addEventListener('pointercancel', end);
  canvas.addEventListener('pointerleave', hideTip);
  canvas.addEventListener('dblclick', event => zoom(0.4, at(event)[0]));
  canvas.addEventListener('wheel', event => {
    if (event.ctrlKey || event.metaKey || event.altKey) {
      event.preventDefault();
      zoom(2 ** (Math.max(-60, Math.min(60, event.deltaY)) / 60), at(event)[0]);
    } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      event.preventDefault();
      pan((event.deltaX || event.deltaY) / width());
    }
  }, { passive: false });
}

function say(x, y) {
  const hit = found(x, y);
  if (hit) byId('said').textContent = describe(hit).replace('\n', ', ');
  showTip(x, y);
}

const whole = () => look(0, SHOWS.length);
const KEYS = {
  ArrowLeft: () => pan(-0.2), ArrowRight: () => pan(0.2), '+': () => zoom(0.5),
  '=': () => zoom(0.5), '-': () => zoom(2), '0': whole,
  ArrowUp: () => byId('lanes').scrollBy(0, -40), ArrowDown: () => byId('lanes').scrollBy(0, 40),
  n: () => step(1), p: () => step(-1), Escape: () => choose(null),
};

function keys(event) {
  const act = KEYS[event.key];
  if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  act();
}

// A finding's places are marked, the longest is gone to; again, and the marks are gone.
function choose(number) {
  const same = number !== null && SHOWS.chosen && SHOWS.chosen.number === number;
  SHOWS.chosen = number === null || same ? null :
    { number, places: SHOWS.data.findings[number].places, at: 0 };
  document.querySelectorAll('button.finding').forEach(button => {
    const on = Boolean(SHOWS.chosen) && Number(button.dataset.number) === number;
    button.setAttribute('aria-pressed', String(on));
    button.closest('li').classList.toggle('shown', on);
  });
  for (const id of ['next', 'previous']) if (byId(id)) byId(id).disabled = !SHOWS.chosen;
  if (SHOWS.chosen) {
    go();
    const behavior = calm.matches ? 'auto' : 'smooth';
    byId('timeline-part').scrollIntoView({ block: 'start', behavior });
  } else {
    byId('said').textContent = '';
    schedule();
  }
}

function step(by) {
  if (!SHOWS.chosen) return;
  const { places, at: now } = SHOWS.chosen;
  SHOWS.chosen.at = (now + by + places.length) % places.length;
  go();
}

function go() {
  const { number, places, at: now } = SHOWS.chosen;
  const place = places[now], length = Math.max(place.end - place.start, NARROWEST);
  look(place.start - 0.75 * length, place.end + 0.75 * length);
  const row = SHOWS.rows.find(each => !each.label && each.trace === place.trace &&
                              (place.device === null || each.device === place.device));
  if (row) byId('lanes').scrollTop = Math.max(0, row.y - LABEL - 4);
  const { title, all } = SHOWS.data.findings[number];
  const more = all > places.length ? `, the longest of ${all}` : '';
  byId('said').textContent = `${title}: ${now + 1} of ${places.length}${more}: ${place.what}, ` +
    `${timeText(place.end - place.start)} from ${timeText(place.start)}`;
}

// Tables by a column: as numbers where cells have them, else as words.
function sortable(table) {
  table.querySelectorAll('thead button').forEach((button, column) => {
    button.addEventListener('click', () => {
      const head = button.closest('th'), body = table.tBodies[0];
      const down = head.getAttribute('aria-sort') !== 'descending';
      table.querySelectorAll('th[aria-sort]').forEach(each => each.removeAttribute('aria-sort'));
      head.setAttribute('aria-sort', down ? 'descending' : 'ascending');
      const value = row => row.cells[column].dataset.value ?? row.cells[column].textContent;
      const order = (one, other) => {
        const [a, b] = [value(one), value(other)];
        if ((a === '') !== (b === '')) return a === '' ? 1 : -1; // not recorded: always last
        const differ = isNaN(a) || isNaN(b) ? a.localeCompare(b) : a - b;
        return down ? -differ : differ;
      };
      body.append(...[...body.rows].sort(order));
    });
  });
}

function begin() {
  prepare(JSON.parse(byId('data').textContent));
  document.querySelectorAll('table.sortable').forEach(sortable);
  if (!byId('timeline')) return;
  document.querySelectorAll('button.finding').forEach(button => {
    button.addEventListener('click', () => choose(Number(button.dataset.number)));
  });
  pointers(byId('canvas'));
  byId('canvas').addEventListener('keydown', keys);
  const acts = { nearer: () => zoom(0.5), farther: () => zoom(2), whole,
                 left: () => pan(-0.3), right: () => pan(0.3), next: () => step(1),
                 previous: () => step(-1) };
  for (const [id, act] of Object.entries(acts)) byId(id)?.addEventListener('click', act);
  new ResizeObserver(schedule).observe(byId('lanes'));
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', schedule);
  draw();
}

begin();
