
'use strict';
(() => {
  const NOTHING = '–';
  const SVG = 'http://www.w3.org/2000/svg';
  const FEW = 12; // clients that can be told apart as lines
  const $ = id => document.getElementById(id);
  // What JSON cannot say comes as a string.
  const num = value => typeof value === 'string' ? Number(value) : value ?? NaN;

  let model = null;
  let over = false;

  function element(name, attributes, ...children) {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  }

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

  /** Round values that divide an axis into about n parts. */
  function ticks(least, greatest, n) {
    const raw = (greatest - least) / n;
    const power = 10 ** Math.floor(Math.log10(raw));
    const unit = [1, 2, 5, 10].map(factor => factor * power).find(size => size >= raw) ?? raw;
    const made = [];
    for (let i = Math.ceil(least / unit - 1e-9); i * unit <= greatest + unit * 1e-9; i++) made.push(i * unit);
    return made;
  }

  /** The same for a logarithmic axis, whose ends are given as powers of ten. */
  function decades(low, high) {
    const made = [];
    const apart = Math.max(1, Math.ceil((high - low) / 7));
    for (let power = Math.floor(low); power <= high; power++) {
      if (power % apart !== 0) continue;
      for (const factor of high - low > 2 ? [1] : high - low > 1 ? [1, 3] : [1, 1.5, 2, 3, 5, 7]) {
        const value = factor * 10 ** power;
        if (Math.log10(value) >= low && Math.log10(value) <= high) made.push(value);
      }
    }
    return made.length > 1 ? made : [10 ** low, 10 ** high].map(value => Number(value.toPrecision(2)));
  }

  function tickText(value) {
    const size = Math.abs(value);
    if (size >= 1e4) {
      const [unit, name] = size >= 1e9 ? [1e9, 'G'] : size >= 1e6 ? [1e6, 'M'] : [1e3, 'k'];
      return Number((value / unit).toPrecision(4)) + name;
    }
    if (size !== 0 && size < 1e-3) return value.toExponential(0);
    return String(Number(value.toPrecision(6))).replace('-', '−');
  }

  /** A chart of lines against steps, which a pointer or the arrow keys read. */
  class Chart {
    constructor(parent, title, share) {
      this.share = share;
      this.logarithmic = null; // until somebody says
      this.series = [];
      this.figure = html('figure');
      this.button = html('button', '', 'log');
      this.button.type = 'button';
      this.button.title = 'logarithmic scale';
      this.button.onclick = () => {
        this.logarithmic = !this.isLogarithmic();
        this.draw();
      };
      const top = html('div', 'top', html('h3', '', title));
      if (!share) top.append(this.button);
      this.title = title;
      this.plot = element('svg', {class: 'plot', role: 'img', tabindex: 0});
      this.legend = html('ul', 'legend');
      this.caption = html('figcaption');
      this.figure.append(top, this.plot, this.legend, this.caption);
      parent.append(this.figure);
      this.at = null;
      this.plot.onpointermove = event => this.point(event.clientX - this.plot.getBoundingClientRect().left);
      this.plot.onpointerleave = () => this.look(null);
      this.plot.onblur = () => this.look(null);
      this.plot.onkeydown = event => {
        const steps = this.steps();
        const now = this.at === null ? steps.length - 1 : steps.findIndex(step => step >= this.at);
        const to = {ArrowLeft: now - 1, ArrowRight: now + 1, Home: 0, End: steps.length - 1, PageUp: now - 20, PageDown: now + 20}[event.key];
        if (to === undefined || steps.length === 0) return;
        event.preventDefault();
        this.look(steps[Math.max(0, Math.min(steps.length - 1, to))]);
      };
      new ResizeObserver(() => this.draw()).observe(this.plot);
    }

    /** Of the series that has most. */
    steps() {
      return this.series.reduce((most, one) => one.points.length > most.length ? one.points : most, []).map(point => point[0]);
    }

    point(x) {
      const steps = this.steps();
      if (!this.frame || steps.length === 0) return;
      const {left, width, from, to} = this.frame;
      const step = from + (x - left) / width * (to - from);
      let best = steps[0];
      for (const one of steps) if (Math.abs(one - step) < Math.abs(best - step)) best = one;
      this.look(best);
    }

    look(step) {
      this.at = step;
      this.draw();
    }

    set(series, to, note) {
      this.series = series;
      this.to = to;
      this.note = note ?? '';
      this.draw();
    }

    values() {
      const found = [];
      for (const one of this.series) {
        for (const point of one.points) {
          for (const value of point.slice(1)) if (Number.isFinite(value)) found.push(value);
        }
      }
      return found;
    }

    /** Of all finite values; and the least that a logarithmic scale shows. */
    range() {
      let least = Infinity;
      let greatest = -Infinity;
      let positive = Infinity;
      for (const value of this.values()) {
        least = Math.min(least, value);
        greatest = Math.max(greatest, value);
        if (value > 0) positive = Math.min(positive, value);
      }
      return {least, greatest, floor: Math.max(positive, greatest * 1e-9)};
    }

    isLogarithmic() {
      const {least, greatest, floor} = this.range();
      return !this.share && least >= 0 && greatest > 0 && (this.logarithmic ?? greatest / floor > 50);
    }

    draw() {
      const width = this.plot.clientWidth;
      const height = this.plot.clientHeight;
      if (width === 0) return;
      const left = 48;
      const right = 12;
      const top = 10;
      const bottom = 24;
      const inner = {width: width - left - right, height: height - top - bottom};
      const {least, greatest, floor} = this.range();
      const logarithmic = this.isLogarithmic();
      this.button.setAttribute('aria-pressed', logarithmic);
      const parts = [];
      if (!(least <= greatest)) {
        parts.push(element('text', {x: width / 2, y: height / 2, class: 'middle'}, 'nothing yet'));
        this.frame = null;
      } else {
        const scale = logarithmic ? value => Math.log10(Math.max(value, floor)) : value => value;
        let low = scale(least);
        let high = scale(greatest);
        const room = Math.max((high - low) * .06, logarithmic ? .02 : Math.abs(high) * 1e-3 || 1e-3);
        low = this.share ? Math.max(0, low - room) : !logarithmic && least >= 0 && low - room < (high - low) * .3 ? 0 : low - room;
        high = this.share ? Math.min(1, high + room) : high + room;
        if (high - low < 1e-9) high = low + 1;
        let from = Infinity;
        let to = this.to ?? 0;
        for (const step of this.steps()) {
          from = Math.min(from, step);
          to = Math.max(to, step);
        }
        if (this.series.some(one => one.points.length > 0 && one.points[0][0] < to * .2)) from = 0;
        if (to <= from) to = from + 1;
        const x = step => left + (step - from) / (to - from) * inner.width;
        const y = value => top + (1 - (scale(value) - low) / (high - low)) * inner.height;
        this.frame = {left, width: inner.width, from, to};
        for (const tick of logarithmic ? decades(low, high) : ticks(low, high, 5)) {
          const at = y(tick);
          parts.push(element('path', {class: 'grid', d: `M${left} ${at}H${width - right}`}));
          parts.push(element('text', {class: 'end', x: left - 6, y: at + 4}, this.share ? Math.round(tick * 1000) / 10 + '%' : tickText(tick)));
        }
        for (const tick of ticks(from, to, Math.max(2, Math.min(8, inner.width / 80)))) {
          parts.push(element('path', {class: 'axis', d: `M${x(tick)} ${height - bottom}v4`}));
          parts.push(element('text', {class: tick === to && x(tick) > width - 20 ? 'end' : 'middle', x: x(tick), y: height - 6}, tickText(tick)));
        }
        parts.push(element('path', {class: 'axis', d: `M${left} ${top}V${height - bottom}H${width - right}`}));
        for (const one of this.series) parts.push(this.drawn(one, x, y));
        if (this.at !== null) parts.push(element('path', {class: 'cursor', d: `M${x(this.at)} ${top}V${height - bottom}`}));
      }
      this.plot.replaceChildren(...parts);
      this.write();
    }

    drawn(one, x, y) {
      const group = element('g', {class: one.look});
      if (one.points.length > 0 && one.points[0].length > 2) {
        const shown = one.points.filter(point => Number.isFinite(point[2]) && Number.isFinite(point[3]));
        const upper = shown.map(point => `${x(point[0]).toFixed(1)} ${y(point[3]).toFixed(1)}`);
        const lower = shown.map(point => `${x(point[0]).toFixed(1)} ${y(point[2]).toFixed(1)}`).reverse();
        if (shown.length > 1) group.append(element('path', {class: 'band', d: 'M' + upper.concat(lower).join('L') + 'Z'}));
      }
      let path = '';
      let pen = 'M';
      for (const point of one.points) {
        if (Number.isFinite(point[1])) {
          path += `${pen}${x(point[0]).toFixed(1)} ${y(point[1]).toFixed(1)}`;
          pen = 'L';
        } else {
          pen = 'M';
        }
      }
      group.append(element('path', {class: 'line', d: path}));
      const last = one.points.findLast(point => Number.isFinite(point[1]));
      if (last) group.append(element('circle', {class: 'dot', r: 3.5, cx: x(last[0]), cy: y(last[1])}));
      return group;
    }

    /** The last values, or those under the cursor. */
    write() {
      const items = [];
      const words = [];
      for (const one of this.series) {
        let point = one.points.at(-1);
        if (this.at !== null) {
          for (const candidate of one.points) {
            if (!point || Math.abs(candidate[0] - this.at) < Math.abs(point[0] - this.at)) point = candidate;
          }
        }
        const value = point ? (this.share ? percent(point[1]) : plain(point[1])) : NOTHING;
        const key = element('svg', {viewBox: '0 0 28 8', 'aria-hidden': 'true'}, element('path', {class: 'key ' + one.look, d: 'M0 4H28'}));
        const item = html('li', '', key, one.name + ' ', html('b', '', value));
        if (point && point.length > 2 && Number.isFinite(point[2])) item.append(`, clients ${plain(point[2])} to ${plain(point[3])}`);
        items.push(item);
        words.push(one.name + ' ' + value);
      }
      this.legend.replaceChildren(...items);
      this.caption.textContent = this.at === null ? this.note : 'at step ' + count(this.at);
      this.plot.setAttribute('aria-label', `${this.title} against steps; ${words.join(', ')}`);
    }
  }

  /** Who, when, and how bad: a colour for each client and each stretch of rounds. */
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
      // Without the few least and greatest, which would leave no colours for the rest.
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

  const charts = new Map();
  function chart(parent, title, share) {
    if (!charts.has(title)) charts.set(title, new Chart(parent, title, share));
    return charts.get(title);
  }

  function text(id, value) {
    const at = $(id);
    if (at.textContent !== value) at.textContent = value;
  }

  function show() {
    showHead();
    showTiles();
    showCurves();
    showClients();
    showDevices();
    showFaults();
  }

  const STATES = {
    waiting: 'preparing', running: 'running', done: 'done', stopped: 'stopped', failed: 'failed', gone: 'ended without a word',
  };

  function showHead() {
    const {about} = model;
    const title = about.title || about.method || 'fedcomuon';
    text('title', title);
    text('state', STATES[model.state] ?? model.state);
    $('state').className = 'badge ' + model.state;
    const share = model.iterations > 0 ? model.step / model.iterations : 0;
    document.title = (model.state === 'running' ? Math.floor(100 * share) + ' % · ' : (STATES[model.state] ?? '') + ' · ') + title;
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

  /** Goes on between two messages. */
  function showTime() {
    const running = model.state === 'running';
    const since = running && !over ? (performance.now() - model.received) / 1000 : 0;
    text('left', running ? duration(Math.max(0, num(model.left) - since)) : model.state === 'done' ? '0 s' : NOTHING);
    text('elapsed', model.seconds > 0 ? duration(model.seconds + since) + ' so far' : '');
  }

  const KINDS = [
    {name: 'Loss', share: false, has: key => /(^|_)loss(_|$)/.test(key)},
    {name: 'Accuracy', share: true, has: key => /accuracy$/.test(key)},
    {name: 'Objective', share: false, has: key => /objective$/.test(key)},
    {name: 'Perplexity', share: false, has: key => /perplexity$/.test(key)},
  ];
  const LOOKS = {train_objective: 'c3 dash3', train_loss_pooled: 'c6 dash1', train: 'c1', test: 'c2 dash1', worst: 'c4 dash2'};

  function showCurves() {
    const parent = $('curves');
    const to = model.state === 'done' ? model.step : Math.max(model.step, 1);
    const rounds = model.rounds.concat(model.roundsOpen);
    if (rounds.length > 0 || model.evaluations.length === 0) {
      chart(parent, 'Mean loss of a round', false).set([{name: 'mean', look: 'c1', points: rounds}], to,
        'on the samples drawn; the area is from the least to the greatest of all clients');
    }
    // The last one, which the sampled ones may not have.
    const last = model.evaluation ? [evaluation(model.evaluation)] : [];
    const all = model.evaluations.concat(last.filter(([step]) => !(model.evaluations.at(-1)?.[0] >= step)));
    const keys = new Set(all.flatMap(([, metrics]) => Object.keys(metrics)));
    const kinds = KINDS.map(kind => [kind, [...keys].filter(kind.has)]);
    for (const key of keys) {
      if (!KINDS.some(kind => kind.has(key))) kinds.push([{name: key.replaceAll('_', ' '), share: false}, [key]]);
    }
    for (const [kind, members] of kinds) {
      if (members.length === 0) continue;
      const series = members.map((key, i) => ({
        name: key.replace(/_?(loss|accuracy|objective|perplexity)/, '').replaceAll('_', ' ') || kind.name.toLowerCase(),
        look: LOOKS[key] ?? LOOKS[key.split('_')[0]] ?? `c${i % 9 + 1} dash${i % 4}`,
        points: all.filter(([, metrics]) => key in metrics).map(([step, metrics]) => [step, metrics[key]]),
      }));
      const share = kind.share && series.every(one => one.points.every(([, value]) => !(value > 1 || value < 0)));
      chart(parent, kind.name + ', evaluated', share).set(series, to, `of the average model, at step ${count(all.at(-1)[0])}`);
    }
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
    drawBars(values, losses, worst);
    const parent = $('course');
    if (values.length <= FEW) {
      chart(parent, 'Loss of each client, all rounds', false).set(values.map((_, i) => ({
        name: String(i),
        look: `many c${i % 9 + 1} dash${Math.floor(i / 9) + i % 2 * 2}`,
        points: columns.map(([step, rows]) => [step, rows[i]]).filter(([, value]) => !Number.isNaN(value)),
      })), Math.max(model.step, 1), 'each point the mean of one or more rounds');
    } else if (columns.length > 0) {
      heat ??= new Heat(parent);
      heat.set(columns, losses.group);
    }
  }

  let barsLog = null; // until somebody says
  $('bars-log').onclick = () => {
    barsLog = $('bars-log').getAttribute('aria-pressed') === 'false';
    schedule();
  };
  $('sort').onclick = () => {
    $('sort').setAttribute('aria-pressed', $('sort').getAttribute('aria-pressed') === 'false');
    schedule();
  };

  function drawBars(values, losses, worst) {
    const plot = $('bars');
    const width = plot.clientWidth;
    const height = plot.clientHeight;
    const left = 48;
    const bottom = 24;
    const top = 18;
    const byLoss = $('sort').getAttribute('aria-pressed') === 'true';
    const order = values.map((_, i) => i);
    const size = i => Number.isNaN(values[i]) ? -Infinity : values[i];
    if (byLoss) order.sort((a, b) => size(b) - size(a));
    const finite = values.filter(Number.isFinite);
    const sign = finite.every(value => value >= 0);
    const floor = Math.max(Math.min(...finite.filter(value => value > 0)), Math.max(...finite) * 1e-9) / 2;
    const logarithmic = sign && Number.isFinite(floor) && Math.max(...finite) / floor > 50 && barsLog !== false || sign && barsLog === true;
    $('bars-log').setAttribute('aria-pressed', logarithmic);
    const scale = logarithmic ? value => Math.log10(Math.max(value, floor)) : value => value;
    const high = scale(Math.max(...finite, 0)) || (logarithmic ? 0 : 1);
    const low = logarithmic ? scale(floor) : Math.min(...finite, 0);
    const y = value => top + (1 - (scale(value) - low) / (high - low || 1)) * (height - top - bottom);
    const pitch = (width - left - 4) / values.length;
    const parts = [];
    for (const tick of logarithmic ? decades(low, high) : ticks(low, high, 4)) {
      parts.push(element('path', {class: 'grid', d: `M${left} ${y(tick)}H${width}`}));
      parts.push(element('text', {class: 'end', x: left - 6, y: y(tick) + 4}, tickText(tick)));
    }
    const every = Math.max(1, Math.ceil(34 / pitch));
    order.forEach((row, at) => {
      const x = left + 2 + at * pitch;
      const value = Number.isFinite(values[row]) ? values[row] : values[row] === Infinity ? Math.max(...finite, 0) : 0;
      const bar = element('rect', {
        class: 'column' + (row === worst ? ' worst' : '') + (losses.age[row] > 0 ? ' old' : ''),
        x, y: Math.min(y(value), y(0)), width: Math.max(.5, pitch - (pitch > 4 ? 1.5 : 0)), height: Math.abs(y(0) - y(value)),
      });
      const age = losses.age[row] > 0 ? `, ${count(losses.age[row])} ${losses.age[row] === 1 ? 'round' : 'rounds'} ago` : '';
      bar.append(element('title', {}, `${clientName(row, losses.group)}: ${plain(values[row])}${age}`));
      parts.push(bar);
      if (row === worst) {
        const anchor = x > width - 60 ? 'end strong' : x < left + 30 ? 'strong' : 'middle strong';
        parts.push(element('text', {class: anchor, x: x + pitch / 2, y: y(value) - 5}, plain(values[row])));
      }
      if (!byLoss && at % every === 0 || byLoss && pitch > 24) {
        parts.push(element('text', {class: 'middle', x: x + pitch / 2, y: height - 6}, String(row * losses.group)));
      }
    });
    parts.push(element('path', {class: 'axis', d: `M${left} ${y(0)}H${width}`}));
    plot.replaceChildren(...parts);
    const old = losses.age.filter(age => age > 0).length;
    text('bars-note', (byLoss && pitch <= 24 ? 'the worst first' : 'by number of the client' + (byLoss ? ', the worst first' : ''))
      + (losses.group > 1 ? `; each bar the worst of ${losses.group}` : '') + (old > 0 ? `; ${count(old)} pale: from an earlier round` : ''));
  }
  new ResizeObserver(() => schedule()).observe($('bars'));

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
    if (lines === all) return; // so that it can be scrolled and copied
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

  const events = new EventSource('events' + location.search);
  events.onopen = () => connection('');
  events.addEventListener('history', event => take(JSON.parse(event.data), true));
  events.addEventListener('update', event => take(JSON.parse(event.data), false));
  events.addEventListener('bye', () => {
    over = true;
    events.close();
    connection('The program that served this page has ended. What is shown stays until the page is reloaded.');
  });
  events.onerror = () => {
    if (over) return;
    connection(events.readyState === EventSource.CLOSED
      ? 'The program does not answer this page any more; reload it to try again.'
      : 'The connection is interrupted; trying again. What is shown may be old.');
    if (events.readyState === EventSource.CLOSED) over = true;
  };
  setInterval(() => {
    if (model && model.state === 'running') showTime();
  }, 1000);
})();
