
'use strict';
(() => {
  const NOTHING = '–';
  const FEW = 12; // clients that the server draws as lines
  const $ = id => document.getElementById(id);
  // JSON has no NaN and no infinities; they come as strings.
  const num = value => typeof value === 'string' ? Number(value) : value ?? NaN;

  let model = null;
  let over = false;

  function html(name, className, ...children) {
    const made = document.createElement(name);
    if (className) made.className = className;
    made.append(...children);
    return made;
  }

  /* Numbers as people read them. */

  function plain(value) {
    if (!Number.isFinite(value)) return Number.isNaN(value) ? 'NaN' : value > 0 ? '∞' : '−∞';
    const size = Math.abs(value);
    if (size !== 0 && (size >= 1e6 || size < 1e-3)) return value.toExponential(2).replace('e+', 'e').replace('-', '−');
    return value.toPrecision(size >= 1000 ? Math.ceil(Math.log10(size + 1)) : 4).replace('-', '−');
  }

  function count(value) {
    return Number.isFinite(value) ? Math.round(value).toLocaleString('en').replaceAll(',', '\u202f') : NOTHING;
  }

  function rate(value) {
    if (!Number.isFinite(value)) return NOTHING;
    return value >= 100 ? count(value) : value.toFixed(value >= 10 ? 1 : 2);
  }

  function bytes(value) {
    const units = ['B', 'kB', 'MB', 'GB', 'TB', 'PB'];
    let unit = 0;
    while (value >= 1000 && unit + 1 < units.length) {
      value /= 1000;
      unit++;
    }
    return (unit === 0 || value >= 100 ? Math.round(value) : value.toPrecision(3)) + ' ' + units[unit];
  }

  function duration(seconds) {
    if (!Number.isFinite(seconds)) return NOTHING;
    const whole = Math.round(seconds);
    const two = value => String(value).padStart(2, '0');
    if (whole < 60) return whole + ' s';
    if (whole < 3600) return Math.floor(whole / 60) + ' min ' + two(whole % 60) + ' s';
    if (whole < 172800) return Math.floor(whole / 3600) + ' h ' + two(Math.floor(whole / 60) % 60) + ' min';
    return Math.floor(whole / 86400) + ' days ' + Math.floor(whole / 3600) % 24 + ' h';
  }

  function percent(share) {
    return Number.isFinite(share) ? (100 * share).toFixed(1) + ' %' : NOTHING;
  }

  /** Clients as ranges: 0–4, 7. */
  function ranges(numbers) {
    const parts = [];
    for (let i = 0; i < numbers.length;) {
      let j = i;
      while (numbers[j + 1] === numbers[j] + 1) j++;
      parts.push(i === j ? numbers[i] : numbers[i] + '–' + numbers[j]);
      i = j + 1;
    }
    return parts.length > 12 ? parts.slice(0, 12).join(', ') + ', …' : parts.join(', ');
  }

  /** A map of losses: a row per client, a column per interval of rounds. */
  class Heat {
    constructor(parent) {
      this.canvas = html('canvas');
      this.canvas.setAttribute('role', 'img');
      this.key = html('canvas');
      this.low = html('span');
      this.high = html('span');
      this.caption = html('figcaption');
      const scale = html('div', 'scale', this.low, this.key, this.high);
      this.figure = html('figure', '', html('div', 'top', html('h3', '', 'Loss of each client, all rounds')), this.canvas, scale, this.caption);
      parent.append(this.figure);
      this.canvas.onpointermove = event => this.read(event);
      this.canvas.onpointerleave = () => this.say();
      matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => schedule());
    }

    set(columns, group) {
      this.columns = columns;
      this.group = group;
      const rows = columns[0][1].length;
      // Without the extreme percent at either end, which would leave no colours for the rest.
      const sorted = columns.flatMap(([, values]) => values.filter(Number.isFinite)).sort((a, b) => a - b);
      const least = sorted[Math.floor(sorted.length * .01)] ?? NaN;
      const greatest = sorted[Math.ceil(sorted.length * .99) - 1] ?? NaN;
      const logarithmic = least > 0 && greatest / least > 20;
      const scale = logarithmic ? Math.log : value => value;
      const shade = value => (scale(value) - scale(least)) / (scale(greatest) - scale(least) || 1);
      const colour = this.colours();
      this.canvas.width = columns.length;
      this.canvas.height = rows;
      const context = this.canvas.getContext('2d');
      const image = context.createImageData(columns.length, rows);
      columns.forEach(([, values], i) => values.forEach((value, row) => {
        const [r, g, b, a] = Number.isNaN(value) ? [0, 0, 0, 0] : colour(Number.isFinite(value) ? shade(value) : 1);
        image.data.set([r, g, b, a], 4 * (row * columns.length + i));
      }));
      context.putImageData(image, 0, 0);
      this.key.width = 100;
      this.key.height = 1;
      const strip = this.key.getContext('2d').createImageData(100, 1);
      for (let i = 0; i < 100; i++) strip.data.set(colour(i / 99), 4 * i);
      this.key.getContext('2d').putImageData(strip, 0, 0);
      this.low.textContent = Number.isFinite(least) ? '≤ ' + plain(least) : NOTHING;
      this.high.textContent = Number.isFinite(greatest) ? '≥ ' + plain(greatest) + (logarithmic ? ' (logarithmic)' : '') : NOTHING;
      this.canvas.setAttribute('aria-label', `losses of clients from ${this.low.textContent} to ${this.high.textContent}, a row each, against steps`);
      if (!this.reading) this.say();
    }

    /** From the paper over blue and pink to orange: the worst stand out on either paper. */
    colours() {
      const style = getComputedStyle(document.documentElement);
      const stops = ['--grid', '--c1', '--c4', '--c2'].map(name => {
        const hex = style.getPropertyValue(name).trim();
        return [1, 3, 5].map(at => parseInt(hex.slice(at, at + 2), 16));
      });
      return share => {
        const at = Math.max(0, Math.min(1, share)) * (stops.length - 1);
        const i = Math.min(stops.length - 2, Math.floor(at));
        return [...stops[i].map((value, j) => Math.round(value + (stops[i + 1][j] - value) * (at - i))), 255];
      };
    }

    say() {
      this.reading = false;
      if (!this.columns) return;
      this.caption.textContent = `clients from top to bottom, steps up to ${count(this.columns.at(-1)[0])} from left to right`
        + (this.group > 1 ? `; each row the worst of ${this.group} clients` : '');
    }

    read(event) {
      const box = this.canvas.getBoundingClientRect();
      const column = this.columns?.[Math.floor((event.clientX - box.left) / box.width * this.columns.length)];
      const row = Math.floor((event.clientY - box.top) / box.height * this.canvas.height);
      if (!column || !(row >= 0 && row < column[1].length)) return;
      this.reading = true;
      this.caption.textContent = `${clientName(row, this.group)}, up to step ${count(column[0])}: ${plain(column[1][row])}`;
    }
  }

  function clientName(row, group) {
    return group === 1 ? 'client ' + row : `clients ${row * group}–${(row + 1) * group - 1}`;
  }

  /* What the server sends. */

  const round = point => point.map(num);
  const evaluation = ([step, metrics]) => [num(step), Object.fromEntries(Object.entries(metrics).map(([key, value]) => [key, num(value)]))];
  const column = ([step, rows]) => [num(step), rows.map(num)];

  function take(data, whole) {
    const before = whole || !model ? {rounds: [], evaluations: [], columns: [], about: data.about ?? {}} : model;
    model = {
      ...data,
      about: before.about,
      rounds: before.rounds.concat(data.rounds.points.map(round)),
      roundsOpen: data.rounds.open ? [round(data.rounds.open)] : [],
      evaluations: before.evaluations.concat(data.evaluations.points.map(evaluation)),
      columns: before.columns.concat(data.columns.points.map(column)),
      columnsOpen: data.columns.open ? [column(data.columns.open)] : [],
      received: performance.now(),
    };
    schedule();
  }

  let scheduled = false;
  function schedule() {
    if (scheduled || !model) return;
    scheduled = true;
    requestAnimationFrame(() => {
      scheduled = false;
      show();
    });
  }

  /* The page. */

  /* The charts, which the server draws as it draws those of the reports. */

  const PERIOD = 1000; // milliseconds between two drawings
  const choices = new Map(); // log or linear, by chart
  let byLoss = false;
  let asked = false;
  let again = false;
  let timer = null;
  let drawn = -Infinity;
  let reading = null; // the figure and the step that the pointer or the arrow keys have chosen

  /** Fetches the charts: at most once per period, or immediately after a choice of the reader. */
  async function draw(now) {
    if (over) return;
    if (asked) {
      again = true;
      return;
    }
    const wait = now ? 0 : drawn + PERIOD - performance.now();
    if (wait > 0) {
      timer ??= setTimeout(() => {
        timer = null;
        draw(true);
      }, wait);
      return;
    }
    asked = true;
    drawn = performance.now();
    const query = new URLSearchParams(location.search);
    for (const [chart, scale] of choices) query.append(scale, chart);
    if (byLoss) query.append('order', 'loss');
    try {
      const answer = await fetch('charts?' + query);
      if (answer.ok) place(await answer.text());
    } catch {
      // The state of the connection is shown by the events.
    }
    asked = false;
    if (again) {
      again = false;
      draw(false);
    }
  }

  /** Replaces only the parts that change, so that the focus stays where it is. */
  function place(markup) {
    const fresh = new DOMParser().parseFromString(markup, 'text/html');
    for (const group of fresh.querySelectorAll('[data-into]')) {
      const into = $(group.dataset.into);
      for (const figure of [...group.querySelectorAll('figure')]) {
        const plot = figure.querySelector('.plot');
        plot.setAttribute('tabindex', 0);
        const old = document.getElementById(figure.id);
        if (!old) {
          into.append(figure);
          follow(figure);
          continue;
        }
        const there = old.querySelector('.plot');
        for (const name of ['viewBox', 'data-across']) there.setAttribute(name, plot.getAttribute(name));
        there.replaceChildren(...plot.childNodes);
        old.querySelector('.legend').replaceChildren(...figure.querySelector('.legend').childNodes);
        old.querySelector('figcaption').textContent = figure.querySelector('figcaption').textContent;
        const pressed = [...figure.querySelectorAll('button')].map(button => button.getAttribute('aria-pressed'));
        old.querySelectorAll('button').forEach((button, i) => button.setAttribute('aria-pressed', pressed[i]));
      }
    }
    if (reading) read(reading.figure, reading.step);
  }

  function follow(figure) {
    const plot = figure.querySelector('.plot');
    figure.onclick = event => {
      const button = event.target.closest('button');
      if (!button) return;
      if (button.className === 'sort') byLoss = !byLoss;
      else choices.set(figure.id.replace('chart-', ''), button.getAttribute('aria-pressed') === 'true' ? 'linear' : 'log');
      draw(true);
    };
    if (!figure.querySelector('[data-key]')) return;
    plot.onpointermove = event => {
      const box = plot.getBoundingClientRect();
      const [left, right, from, to] = frame(plot);
      const x = (event.clientX - box.left) / box.width * plot.viewBox.baseVal.width;
      read(figure, from + (x - left) / (right - left) * (to - from));
    };
    plot.onpointerleave = plot.onblur = () => {
      reading = null;
      draw(true);
    };
    plot.onkeydown = event => {
      const steps = longest(figure).map(point => point[0]);
      const now = reading ? steps.findIndex(step => step >= reading.step) : steps.length - 1;
      const to = {ArrowLeft: now - 1, ArrowRight: now + 1, Home: 0, End: steps.length - 1, PageUp: now - 20, PageDown: now + 20}[event.key];
      if (to === undefined || steps.length === 0) return;
      event.preventDefault();
      read(figure, steps[Math.max(0, Math.min(steps.length - 1, to))]);
    };
  }

  const frame = plot => plot.dataset.across.split(' ').map(Number);
  const keys = figure => [...figure.querySelectorAll('[data-key]')].map(item => item.dataset.key);
  const longest = figure => keys(figure).map(key => course(figure, key)).reduce((most, one) => one.length > most.length ? one : most);
  const nearest = (points, step) => points.reduce((best, one) => Math.abs(one[0] - step) < Math.abs(best[0] - step) ? one : best);

  /** The values of a line, as [step, value], and [step, mean, least, greatest] of rounds. */
  function course(figure, key) {
    if (figure.id === 'chart-rounds') return model.rounds.concat(model.roundsOpen);
    if (figure.id === 'chart-clients-over-time') {
      return model.columns.concat(model.columnsOpen).map(([step, rows]) => [step, rows[key]]).filter(([, value]) => !Number.isNaN(value));
    }
    const last = model.evaluation ? [evaluation(model.evaluation)] : [];
    return model.evaluations.concat(last.filter(([step]) => !(model.evaluations.at(-1)?.[0] >= step)))
      .filter(([, metrics]) => key in metrics).map(([step, metrics]) => [step, metrics[key]]);
  }

  /** Shows the values nearest to a step instead of the last ones. */
  function read(figure, step) {
    const all = longest(figure);
    if (all.length === 0) return;
    const at = nearest(all, step)[0];
    reading = {figure, step: at};
    const plot = figure.querySelector('.plot');
    const [left, right, from, to] = frame(plot);
    const axis = plot.querySelector('.axis');
    const cursor = plot.querySelector('.cursor') ?? plot.appendChild(axis.cloneNode());
    cursor.setAttribute('class', 'cursor');
    const x = left + (at - from) / (to - from) * (right - left);
    cursor.setAttribute('d', axis.getAttribute('d').replace(/^M\S+ (\S+)V([^H]+)H.*$/, `M${x} $1V$2`));
    const share = !figure.querySelector('.log');
    for (const item of figure.querySelectorAll('[data-key]')) {
      const points = course(figure, item.dataset.key);
      const [, value, least, greatest] = points.length > 0 ? nearest(points, at) : [at, NaN];
      item.querySelector('b').textContent = (share ? percent(value) : plain(value))
        + (Number.isFinite(least) ? `, clients ${plain(least)} to ${plain(greatest)}` : '');
    }
    figure.querySelector('figcaption').textContent = 'at step ' + count(at);
  }

  function text(id, value) {
    const at = $(id);
    if (at.textContent !== value) at.textContent = value;
  }

  function show() {
    showHead();
    showTiles();
    draw(false);
    showClients();
    showDevices();
    showFaults();
  }

  function showHead() {
    const {about} = model;
    const title = about.title || about.method || 'fedcomuon';
    text('title', title);
    text('state', model.label);
    $('state').className = 'badge ' + model.state;
    $('waiting').hidden = model.state !== 'waiting';
    const share = model.iterations > 0 ? model.step / model.iterations : 0;
    document.title = (model.state === 'running' ? Math.floor(100 * share) + ' %' : model.label) + ' · ' + title;
    const facts = [];
    if (about.method) facts.push(about.method);
    for (const [name, value] of Object.entries(about.facts ?? {})) facts.push(name + ' ' + value);
    if (about.clients) facts.push(count(about.clients) + (about.clients === 1 ? ' client' : ' clients'));
    if (about.parameters) facts.push(count(about.parameters) + ' parameters');
    if (about.tau) facts.push('averaged every ' + count(about.tau));
    if (about.seed !== undefined) facts.push('seed ' + about.seed);
    text('facts', facts.join(' · '));
    $('reason').hidden = !model.reason;
    text('reason', model.reason);
    const earlier = model.iterations > 0 ? model.from / model.iterations : 0;
    $('earlier').style.width = 100 * earlier + '%';
    $('done').style.width = 100 * Math.max(0, share - earlier) + '%';
    $('bar').setAttribute('aria-valuemax', model.iterations);
    $('bar').setAttribute('aria-valuenow', model.step);
    $('bar').className = 'bar ' + (model.state === 'failed' ? 'failed-bar' : '');
  }

  function showTiles() {
    const share = model.iterations > 0 ? model.step / model.iterations : NaN;
    text('step', count(model.step));
    text('steps', model.iterations > 0
      ? `of ${count(model.iterations)}, ${percent(share)}` + (model.from > 0 ? `; this part from ${count(model.from)}` : '') : '');
    text('round', model.round === undefined ? NOTHING : count(model.round));
    text('participants', model.participants === undefined ? ''
      : `${count(model.participants)} took part` + (model.dropped > 0 ? `, ${model.dropped} failed` : ''));
    text('rate', rate(num(model.rate)));
    text('clientRate', num(model.clientRate) > 0 ? rate(num(model.clientRate)) + ' client steps/s' : '');
    text('bytes', model.bytes === undefined ? NOTHING : bytes(model.bytes));
    text('trips', model.roundTrips === undefined ? '' : count(model.roundTrips) + ' round trips');
    text('checkpoint', model.checkpoint ? 'step ' + count(model.checkpoint.step) : NOTHING);
    text('file', model.checkpoint ? model.checkpoint.file : '');
    $('file').title = model.checkpoint ? model.checkpoint.file : '';
    showTime();
  }

  /** The time goes on between two messages. */
  function showTime() {
    const running = model.state === 'running';
    const since = running && !over ? (performance.now() - model.received) / 1000 : 0;
    text('left', running ? duration(Math.max(0, num(model.left) - since)) : model.state === 'done' ? '0 s' : NOTHING);
    text('elapsed', model.seconds > 0 ? duration(model.seconds + since) + ' so far' : '');
  }

  let heat = null;
  function showClients() {
    const {losses} = model;
    const values = losses.last.map(num);
    const columns = model.columns.concat(model.columnsOpen);
    const known = values.some(value => !Number.isNaN(value));
    $('clients').hidden = !known;
    if (!known) return;
    const worst = values.reduce((most, value, i) => Number.isNaN(values[most]) || value > values[most] ? i : most, 0);
    const best = values.reduce((least, value, i) => Number.isNaN(values[least]) || value < values[least] ? i : least, 0);
    const sorted = values.filter(value => !Number.isNaN(value)).sort((a, b) => a - b);
    text('worst', `worst: ${clientName(worst, losses.group)} with ${plain(values[worst])} · median ${plain(sorted[Math.floor(sorted.length / 2)])}`
      + ` · best: ${clientName(best, losses.group)} with ${plain(values[best])}`);
    if (values.length > FEW && columns.length > 0) {
      heat ??= new Heat($('client-charts'));
      heat.set(columns, losses.group);
    }
  }

  const PHASES = [['gradient', 'c1'], ['orthogonalize', 'c2'], ['exchange', 'c3'], ['other', 'rest']];

  function showDevices() {
    const devices = model.about.devices ?? [];
    $('devices').hidden = devices.length === 0;
    const rows = devices.map((device, i) => {
      const seconds = model.devices?.[i];
      const total = seconds ? PHASES.reduce((sum, [key]) => sum + num(seconds[key]), 0) : 0;
      const stack = html('div', 'stack');
      const cells = PHASES.map(([key, look]) => {
        const share = total > 0 ? num(seconds[key]) / total : NaN;
        const part = html('div', look);
        part.style.width = 100 * (share || 0) + '%';
        stack.append(part);
        return html('td', '', percent(share));
      });
      const name = html('th', 'text', device.name);
      name.scope = 'row';
      const clients = device.clients.length + (device.clients.length > 0 ? ': ' + ranges(device.clients) : '');
      return html('tr', '', name, html('td', 'text', clients), html('td', 'share', stack), ...cells);
    });
    $('device-rows').replaceChildren(...rows);
  }

  let lines = '';
  function showFaults() {
    const now = model.warnings.concat(
      model.faults.map(fault => `client ${fault.client} failed ${fault.step < 0 ? 'in its initialisation' : 'in step ' + fault.step}: ${fault.reason}`).reverse());
    const all = model.faultCount + '\n' + now.join('\n');
    if (lines === all) return; // keeps the scroll position and the selection
    lines = all;
    $('no-faults').hidden = now.length > 0 && model.faultCount === 0;
    text('no-faults', now.length === 0 ? 'None.' : `${count(model.faultCount)} faults; the newest first`);
    $('faults').replaceChildren(...now.map(line => html('li', '', line)));
  }

  /* The connection. */

  function connection(words) {
    $('connection').hidden = !words;
    text('connection', words);
  }

  const AGAIN = 5; // seconds between two attempts where there was no room

  function listen() {
    const events = new EventSource('events' + location.search);
    events.onopen = () => connection('');
    events.addEventListener('history', event => take(JSON.parse(event.data), true));
    events.addEventListener('update', event => take(JSON.parse(event.data), false));
    events.addEventListener('bye', event => {
      over = true;
      if (choices.size === 0 && !byLoss) place(JSON.parse(event.data).charts);
      events.close();
      connection('The program that served this page has ended. The page keeps what it shows until it is reloaded.');
    });
    events.onerror = () => {
      if (over) return;
      if (events.readyState !== EventSource.CLOSED) {
        connection('The connection is interrupted and is being restored. The values shown may be old.');
        return;
      }
      // The server has answered, with a refusal.
      connection(`Too many browsers show this run, so that this one cannot be told about it. The next attempt is in ${AGAIN} s.`);
      setTimeout(listen, 1000 * AGAIN);
    };
  }

  listen();
  setInterval(() => {
    if (model && model.state === 'running') showTime();
  }, 1000);
})();
