/* A plot tells the values under the pointer: a line at the nearest update, and what it gave. */
(() => {
  let read = null;
  const clear = () => {
    read?.setAttribute("visibility", "hidden");
    read = null;
  };
  const nearest = (points, x) => {
    let best = 0;
    for (let i = 1; i < points.length; i++) {
      if (Math.abs(points[i].x - x) < Math.abs(points[best].x - x)) best = i;
    }
    return best;
  };
  const show = (event) => {
    const svg = event.target.closest?.(".plot svg");
    const reader = svg?.querySelector("[data-read]");
    if (reader !== read) clear();
    if (!reader) return;
    read = reader;
    const box = svg.getBoundingClientRect(), width = svg.viewBox.baseVal.width;
    const raw = svg.querySelector(".raw").points;
    const at = nearest(raw, (event.clientX - box.left) / box.width * width);
    const { x } = raw[at], [step, value, smooth] = reader.dataset.read.split(";")[at].split(" ");
    reader.querySelector("line").setAttribute("x1", x);
    reader.querySelector("line").setAttribute("x2", x);
    reader.querySelector("circle").setAttribute("cx", x);
    reader.querySelector("circle").setAttribute("cy", raw[at].y);
    const words = reader.querySelector("text");
    words.textContent = `update ${step}: ${value}, smoothed ${smooth}`;
    const length = words.getComputedTextLength();
    const beside = x + 6 + length < width ? x + 6 : Math.max(0, x - 6 - length);
    words.setAttribute("x", beside);
    reader.setAttribute("visibility", "visible");
  };
  for (const name of ["pointermove", "pointerover", "pointerdown"]) {
    document.addEventListener(name, show, { passive: true });
  }
  document.documentElement.addEventListener("pointerleave", clear);
})();
