"use strict";
// Chapters are shown one at a time, or all; what is compressed is unpacked when it is
// first shown. A link to anything in a chapter opens it.
(() => {
  document.documentElement.classList.add("scripted");
  const chapters = [...document.querySelectorAll(".chapter")];
  if (chapters.length === 0) return;
  async function load(chapter) {
    const packed = chapter.querySelector(":scope > script:not([id])");
    if (!packed) return;
    const bytes = Uint8Array.from(atob(packed.textContent), c => c.charCodeAt(0));
    chapter.replaceChildren();
    chapter.innerHTML = await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
    chapter.dispatchEvent(new Event("chapter", { bubbles: true }));
  }
  const holder = id => chapters.find(c => c.id === id || (c.dataset.holds || "").split(" ").includes(id) || [...c.querySelectorAll("[id]")].some(e => e.id === id));
  async function show() {
    const id = decodeURIComponent(location.hash.slice(1)) || chapters[0].id, all = id === "all", wanted = holder(id);
    if (!all && !wanted) return;
    await Promise.all(chapters.filter(c => all || c === wanted).map(load));
    for (const c of chapters) c.hidden = !all && c !== wanted;
    for (const a of document.querySelectorAll("nav.menu a")) {
      if (a.hash === "#" + (all ? "all" : wanted.id)) a.setAttribute("aria-current", "page");
      else a.removeAttribute("aria-current");
    }
    const target = document.getElementById(id);
    if (location.hash && target) target.scrollIntoView();
    document.body.dataset.chapter = all ? "all" : wanted.id;
  }
  addEventListener("hashchange", show);
  show();
})();

