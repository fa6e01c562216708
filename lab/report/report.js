"use strict";
// Draws the plots that the page describes as data, with uPlot for axes, scales and zoom. Marks are drawn here:
// every series has a shape and a dash of its own, so that hue is never the only difference.
(() => {
  const element = (id) => document.getElementById(id);
  const plots = JSON.parse(element("plots").textContent);
  const dashes = [[], [7, 4], [2, 3], [9, 3, 2, 3], [5, 2], [12, 4], [3, 6], [1, 2]];
  const shapes = ["circle", "square", "triangle", "diamond", "down", "plus", "ring", "cross"];
  const colour = (index) => style(`--s${(index % 8) + 1}`);
  const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const shown = (value) => (Math.abs(value) >= 1e5 || value === 0 ? value.toFixed(0) : String(Number(value.toPrecision(4))));

  function trace(path, shape, x, y, r) {
    const polygon = (...corners) => {
      corners.forEach(([dx, dy], i) => (i ? path.lineTo(x + dx * r, y + dy * r) : path.moveTo(x + dx * r, y + dy * r)));
      path.closePath();
    };
    if (shape === "circle" || shape === "ring") {
      path.moveTo(x + r, y);
      path.arc(x, y, r, 0, 2 * Math.PI);
    } else if (shape === "square") polygon([-0.85, -0.85], [0.85, -0.85], [0.85, 0.85], [-0.85, 0.85]);
    else if (shape === "triangle") polygon([0, -1.15], [1.05, 0.8], [-1.05, 0.8]);
    else if (shape === "down") polygon([0, 1.15], [1.05, -0.8], [-1.05, -0.8]);
    else if (shape === "diamond") polygon([0, -1.25], [1.1, 0], [0, 1.25], [-1.1, 0]);
    else {
      const turn = shape === "cross" ? Math.SQRT1_2 : 0;
      const arm = (a, b) => {
        path.moveTo(x - a * r * 1.2, y - b * r * 1.2);
        path.lineTo(x + a * r * 1.2, y + b * r * 1.2);
      };
      arm(turn || 1, turn);
      arm(turn ? turn : 0, turn ? -turn : 1);
    }
  }

  function mark(context, index, x, y, r) {
    const shape = shapes[index % shapes.length];
    const path = new Path2D();
    trace(path, shape, x, y, r);
    if (["plus", "cross", "ring"].includes(shape)) context.stroke(path);
    else context.fill(path);
  }

  /// Whiskers and marks of every series that has points and is not hidden.
  function drawPoints(u, plot) {
    const { ctx: context } = u;
    const ratio = devicePixelRatio || 1;
    context.save();
    context.beginPath();
    // A mark on the edge is shown whole.
    const edge = 6 * ratio;
    context.rect(u.bbox.left - edge, u.bbox.top, u.bbox.width + 2 * edge, u.bbox.height + edge);
    context.clip();
    plot.series.forEach((series, index) => {
      if (!series.points || !u.series[2 * index + 1].show) return;
      const { x, y, low, high } = series.points;
      context.strokeStyle = context.fillStyle = colour(index);
      context.lineWidth = 1.4 * ratio;
      context.setLineDash([]);
      x.forEach((at, i) => {
        const across = u.valToPos(at, "x", true);
        if (low) {
          context.beginPath();
          context.moveTo(across, u.valToPos(low[i], "y", true));
          context.lineTo(across, u.valToPos(high[i], "y", true));
          context.stroke();
        }
        mark(context, index, across, u.valToPos(y[i], "y", true), (x.length > 80 ? 2.4 : 3.6) * ratio);
      });
    });
    context.restore();
  }

  /// The least and the largest value between two places on the x axis, whiskers included.
  function extent(plot, from, to) {
    let [least, most] = [Infinity, -Infinity];
    for (const series of plot.series) {
      for (const part of [series.points, series.line]) {
        part?.x.forEach((at, i) => {
          if (at < from || at > to) return;
          least = Math.min(least, (part.low ?? part.y)[i]);
          most = Math.max(most, (part.high ?? part.y)[i]);
        });
      }
    }
    return [least, most];
  }

  function verticalRange(plot) {
    return (u) => {
      const [least, most] = extent(plot, u.scales.x.min ?? -Infinity, u.scales.x.max ?? Infinity);
      if (!(most >= least)) return [0, 1];
      const room = (most - (plot.zero ? 0 : least) || Math.abs(most) || 1) * 0.07;
      return [plot.zero ? 0 : least - room, most + room];
    };
  }

  function nearest(points, at) {
    let best = 0;
    points.x.forEach((x, i) => {
      if (Math.abs(x - at) < Math.abs(points.x[best] - at)) best = i;
    });
    return best;
  }

  function readout(u, plot, target) {
    const { left } = u.cursor;
    if (left == null || left < 0) {
      target.textContent = "";
      return;
    }
    const at = u.posToVal(left, "x");
    target.textContent = plot.series
      .filter((series, i) => series.points && u.series[2 * i + 1].show)
      .map(({ label, points }) => {
        const i = nearest(points, at);
        const interval = points.low ? ` (${shown(points.low[i])} to ${shown(points.high[i])})` : "";
        return `${label} at ${shown(points.x[i])}: ${shown(points.y[i])}${interval}`;
      })
      .join(" · ");
  }

  function swatch(index, series) {
    const canvas = document.createElement("canvas");
    const ratio = devicePixelRatio || 1;
    [canvas.width, canvas.height] = [34 * ratio, 14 * ratio];
    const context = canvas.getContext("2d");
    context.scale(ratio, ratio);
    context.strokeStyle = context.fillStyle = colour(index);
    context.lineWidth = 1.8;
    if (series.line) {
      context.setLineDash(dashes[index % dashes.length]);
      context.beginPath();
      context.moveTo(0, 7);
      context.lineTo(34, 7);
      context.stroke();
      context.setLineDash([]);
    }
    if (series.points) mark(context, index, 17, 7, 4);
    return canvas;
  }

  /// Buttons that name the series and hide or show them.
  function legend(u, plot, target) {
    target.replaceChildren(
      ...plot.series.map((series, index) => {
        const button = document.createElement("button");
        button.type = "button";
        button.append(swatch(index, series), series.label);
        button.setAttribute("aria-pressed", String(u.series[2 * index + 1].show));
        button.addEventListener("click", () => {
          const show = !u.series[2 * index + 1].show;
          u.batch(() => [1, 2].forEach((part) => u.setSeries(2 * index + part, { show })));
          button.setAttribute("aria-pressed", String(show));
        });
        return button;
      }),
    );
  }

  function seriesOf(plot) {
    return plot.series.flatMap((series, index) => [
      { label: series.label, paths: () => null, points: { show: false } },
      {
        label: series.label,
        stroke: () => colour(index),
        width: 1.6,
        dash: dashes[index % dashes.length],
        points: { show: false },
        spanGaps: true,
      },
    ]);
  }

  function axis(label, size) {
    return {
      label,
      size,
      labelSize: 20,
      font: "12px system-ui, sans-serif",
      labelFont: "12px system-ui, sans-serif",
      stroke: () => style("--quiet"),
      grid: { stroke: () => style("--line"), width: 1 },
      ticks: { stroke: () => style("--line"), width: 1, size: 5 },
      values: (u, ticks) => ticks.map((tick) => (tick == null ? "" : shown(tick))),
    };
  }

  function sizeOf(target) {
    const width = Math.floor(target.clientWidth);
    return { width, height: Math.round(Math.min(360, Math.max(230, width * 0.5))) };
  }

  function draw(figure) {
    const plot = plots[Number(figure.dataset.plot)];
    const target = figure.querySelector(".plot");
    const empty = { x: [], y: [] };
    const tables = plot.series.flatMap(({ points, line }) => [points ?? empty, line ?? empty]);
    const data = uPlot.join(tables.map(({ x, y }) => [x, y]));
    const u = new uPlot(
      {
        ...sizeOf(target),
        scales: { x: { time: false }, y: { range: verticalRange(plot) } },
        axes: [axis(plot.x, 36), axis(plot.y, 56)],
        series: [{}, ...seriesOf(plot)],
        legend: { show: false },
        cursor: { y: false, points: { show: false }, drag: { x: true, y: false } },
        hooks: {
          draw: [(self) => drawPoints(self, plot)],
          setCursor: [(self) => readout(self, plot, figure.querySelector(".readout"))],
        },
      },
      data,
      target,
    );
    const names = figure.querySelector(".legend");
    legend(u, plot, names);
    return { u, repaint: () => (u.redraw(false), legend(u, plot, names)) };
  }

  function fit(target) {
    if (!target.clientWidth) return;
    const figure = target.closest("figure");
    const size = sizeOf(target);
    if (!drawn.has(figure)) drawn.set(figure, draw(figure));
    else if (drawn.get(figure).u.width !== size.width) drawn.get(figure).u.setSize(size);
  }

  // A plot in a closed fold has no width: it is drawn when it gets one.
  const drawn = new Map();
  const observer = new ResizeObserver((entries) => {
    // Not at once: what is drawn changes sizes, and the observer would tell of that in the same breath.
    requestAnimationFrame(() => entries.forEach(({ target }) => fit(target)));
  });
  document.querySelectorAll("figure[data-plot] .plot").forEach((target) => observer.observe(target));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    drawn.forEach(({ repaint }) => repaint());
  });

  // A link into a closed fold opens it.
  const reveal = () => {
    const target = location.hash.length > 1 && element(decodeURIComponent(location.hash.slice(1)));
    for (let fold = target && target.closest("details"); fold; fold = fold.parentElement.closest("details")) {
      fold.open = true;
    }
    if (target) target.scrollIntoView();
  };
  addEventListener("hashchange", reveal);
  reveal();
})();
