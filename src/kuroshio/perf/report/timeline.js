// The timeline: lanes on a canvas, of which only what can be seen is drawn.
'use strict';

const LABEL = 17, ROW = 15, GAP = 5, HEAD = 24; // px
const NARROWEST = 10; // ns across the whole width
const SHORT = 2; // px: nothing is drawn narrower, so that nothing vanishes

const SHOWS = { data: null, rows: [], height: 0, view: [0, 1], length: 1, chosen: null };
const byId = id => document.getElementById(id);

function timeText(ns) {
  const units = [['s', 1e9], ['ms', 1e6], ['us', 1e3]];
  const [unit, size] = units.find(each => Math.abs(ns) >= 0.9995 * each[1]) || ['ns', 1];
  return `${+(ns / size).toPrecision(size === 1 ? 6 : 4)} ${unit}`;
}

// Columns of differences become times; ends that rise, so that what covers a moment can be found.
function prepared(row) {
  const n = row.start.length;
  const made = { start: new Float64Array(n), end: new Float64Array(n), last: new Float64Array(n),
                 name: row.name, colour: row.colour, count: row.count };
  let at = 0, last = -Infinity;
  for (let i = 0; i < n; i++) {
    at += row.start[i];
    made.start[i] = at;
    made.end[i] = at + row.length[i];
    made.last[i] = last = Math.max(last, made.end[i]);
  }
  return made;
}

// The first of a rising column that is above a value.
function above(column, value, from = 0) {
  let low = from, high = column.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (column[middle] > value) high = middle; else low = middle + 1;
  }
  return low;
}

function prepare(data) {
  SHOWS.data = data;
  let y = 4;
  data.traces.forEach((trace, number) => {
    trace.lanes.forEach((lane, place) => {
      const title = place === 0 && trace.title ? `${trace.title}: ` : '';
      SHOWS.rows.push({ label: title + lane.label, y, trace: number });
      y += LABEL;
      for (const row of lane.rows) {
        SHOWS.rows.push({ ...prepared(row), y, trace: number, device: lane.device });
        y += ROW;
      }
      y += GAP;
    });
  });
  SHOWS.height = y;
  SHOWS.length = Math.max(1, ...data.traces.map(trace => trace.length));
  SHOWS.view = [0, SHOWS.length];
}

function colours() {
  const style = getComputedStyle(document.documentElement);
  const get = name => style.getPropertyValue(name).trim();
  const of = SHOWS.data.colours.map(name => get(`--c-${name}`));
  return { of, on: of.map(readable), quiet: get('--quiet'), lane: get('--lane'),
           mark: get('--mark'), band: get('--band'), paper: get('--paper') };
}

// Black or white, whichever has more contrast with a colour of the form #rrggbb.
function readable(colour) {
  const [red, green, blue] = [1, 3, 5].map(place => {
    const share = parseInt(colour.slice(place, place + 2), 16) / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179 ? '#000000' : '#ffffff';
}

function sized(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  canvas.style.height = `${height}px`;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  const pen = canvas.getContext('2d');
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  pen.font = '12px system-ui, sans-serif';
  pen.textBaseline = 'middle';
  return pen;
}

const width = () => byId('lanes').clientWidth;
const toX = ns => (ns - SHOWS.view[0]) / (SHOWS.view[1] - SHOWS.view[0]) * width();
const toTime = x => SHOWS.view[0] + x / width() * (SHOWS.view[1] - SHOWS.view[0]);

function draw() {
  const wide = width(), paint = colours();
  const pen = sized(byId('canvas'), wide, SHOWS.height);
  for (const row of SHOWS.rows) {
    if (row.label) continue;
    pen.fillStyle = paint.lane;
    pen.fillRect(0, row.y, wide, ROW - 1);
    drawRow(pen, row, wide, paint);
  }
  drawMarks(pen, paint);
  for (const row of SHOWS.rows) {
    if (!row.label) continue;
    pen.fillStyle = paint.quiet;
    pen.fillText(row.label, 4, row.y + LABEL / 2 + 1, wide - 8);
  }
  drawAxis(wide, paint);
  const [from, to] = SHOWS.view;
  byId('range').textContent = `${timeText(from)} to ${timeText(to)}: ${timeText(to - from)} shown`;
}

// What ends in a column of pixels that is taken already is skipped by halving, not one by one: a
// row costs as many steps as it has columns, however many events there are.
function drawRow(pen, row, wide, paint) {
  let at = above(row.last, SHOWS.view[0]);
  while (at < row.start.length && row.start[at] < SHOWS.view[1]) {
    const x = Math.max(0, toX(row.start[at]));
    const stop = Math.min(wide, Math.max(toX(row.end[at]), x + SHORT));
    pen.fillStyle = paint.of[row.colour[at]];
    pen.fillRect(x, row.y, stop - x, ROW - 1);
    if (stop - x > 6) {
      pen.fillStyle = paint.paper;
      pen.fillRect(stop - 1, row.y, 1, ROW - 1);
    }
    if (stop - x > 40) write(pen, row, at, x, stop, paint.on[row.colour[at]]);
    const next = above(row.last, toTime(stop), at + 1);
    at = Math.max(at + 1, stop - x <= SHORT ? next : at + 1);
  }
}

function write(pen, row, at, x, stop, ink) {
  const room = Math.floor((stop - x - 6) / 6.6);
  const name = SHOWS.data.names[row.name[at]];
  pen.fillStyle = ink;
  pen.save();
  pen.beginPath();
  pen.rect(x, row.y, stop - x - 2, ROW - 1);
  pen.clip();
  pen.fillText(name.length > room ? `${name.slice(0, Math.max(room - 1, 1))}\u2026` : name,
               x + 3, row.y + ROW / 2);
  pen.restore();
}

function drawMarks(pen, paint) {
  if (!SHOWS.chosen) return;
  const [from, to] = SHOWS.view;
  SHOWS.chosen.places.forEach((place, number) => {
    if (place.end < from || place.start > to) return;
    const rows = SHOWS.rows.filter(row => row.trace === place.trace && !row.label);
    if (!rows.length) return;
    const x = Math.max(-2, toX(place.start)), stop = Math.min(width() + 2, toX(place.end));
    const now = number === SHOWS.chosen.at;
    const top = rows[0].y - 2, high = rows[rows.length - 1].y + ROW + 1 - top;
    pen.fillStyle = paint.band;
    pen.fillRect(x, top, Math.max(SHORT, stop - x), high);
    pen.strokeStyle = paint.mark;
    pen.lineWidth = now ? 2 : 0.5;
    if (now) pen.strokeRect(x, top, Math.max(SHORT, stop - x), high);
    const own = rows.filter(row => row.device === place.device && place.device !== null);
    if (own.length) pen.strokeRect(x, own[0].y - 1, Math.max(SHORT, stop - x), ROW + 1);
  });
}

function drawAxis(wide, paint) {
  const pen = sized(byId('axis'), wide, HEAD);
  const [from, to] = SHOWS.view;
  const rough = (to - from) / Math.max(2, wide / 110);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map(each => each * power).find(each => each >= rough);
  pen.fillStyle = paint.quiet;
  for (let at = Math.ceil(from / step) * step; at <= to; at += step) {
    const x = toX(at);
    pen.fillRect(x, 0, 1, 6);
    const text = timeText(at), room = pen.measureText(text).width;
    pen.fillText(text, Math.min(Math.max(0, x + 3), wide - room), 14);
  }
}

function look(from, to) {
  const span = Math.min(Math.max(to - from, NARROWEST), SHOWS.length);
  const middle = (from + to) / 2;
  const start = Math.min(Math.max(0, middle - span / 2), SHOWS.length - span);
  SHOWS.view = [start, start + span];
  hideTip();
  schedule();
}

function zoom(factor, x = width() / 2) {
  const about = toTime(x), [from, to] = SHOWS.view;
  const span = Math.min(Math.max((to - from) * factor, NARROWEST), SHOWS.length);
  const start = about - x / width() * span;
  look(start, start + span);
}

function pan(share) {
  const [from, to] = SHOWS.view, by = share * (to - from);
  look(from + by, to + by);
}

let waiting = false;
function schedule() {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => { waiting = false; draw(); });
}

// What lies at a point of the canvas, within two pixels.
function found(x, y) {
  const row = SHOWS.rows.find(each => !each.label && y >= each.y && y < each.y + ROW);
  if (!row || !row.start.length) return null;
  const time = toTime(x), near = toTime(x + 2) - time;
  let at = above(row.start, time + near) - 1;
  for (let tries = 0; at >= 0 && tries < 50; at--, tries++) {
    if (row.end[at] >= time - near) return { row, at };
  }
  return null;
}

function describe({ row, at }) {
  const name = SHOWS.data.names[row.name[at]];
  const count = row.count.length ? row.count[at] : 1;
  const many = count > 1 ? `${count} events, merged; the longest: ` : '';
  return `${many}${name}\n${timeText(row.end[at] - row.start[at])} from ${timeText(row.start[at])}`;
}

function hideTip() {
  byId('tip').hidden = true;
}

function showTip(x, y) {
  const hit = found(x, y), tip = byId('tip');
  tip.hidden = !hit;
  if (!hit) return false;
  tip.textContent = describe(hit);
  const top = y - byId('lanes').scrollTop + HEAD;
  tip.style.left = `${Math.max(0, Math.min(x + 12, width() - tip.offsetWidth - 4))}px`;
  const below = top + 20 + tip.offsetHeight < byId('timeline').clientHeight;
  tip.style.top = `${below ? top + 20 : Math.max(0, top - tip.offsetHeight - 12)}px`;
  return true;
}
