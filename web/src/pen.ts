// What pictures are drawn with: a canvas on the screen, or SVG to be saved. A picture is a function of a pen, so both are the same.
export interface Pen {
  rect(x: number, y: number, w: number, h: number, fill: string, alpha?: number): void;
  /** Filled, or a line where `width` is given. Points are x, y, x, y, … */
  shape(points: number[], colour: string, width?: number, alpha?: number): void;
  /** `room`: cut to fit; align: start, middle, end. */
  text(s: string, x: number, y: number, colour: string, align?: "start" | "middle" | "end", room?: number): void;
  hatch(x: number, y: number, w: number, h: number, colour: string): void;
}

export const FONT = "12px system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif";
const CHAR = 6.6; // about the width of a character

export function cut(s: string, room: number): string {
  const n = Math.floor(room / CHAR);
  if (s.length <= n) return s;
  return n < 3 ? "" : `${s.slice(0, n - 1)}…`;
}

const STEP = 7;

export class CanvasPen implements Pen {
  constructor(private c: CanvasRenderingContext2D) {
    c.font = FONT;
    c.textBaseline = "alphabetic";
  }
  rect(x: number, y: number, w: number, h: number, fill: string, alpha = 1) {
    this.c.globalAlpha = alpha;
    this.c.fillStyle = fill;
    this.c.fillRect(x, y, w, h);
    this.c.globalAlpha = 1;
  }
  shape(points: number[], colour: string, width?: number, alpha = 1) {
    const c = this.c;
    c.globalAlpha = alpha;
    c.beginPath();
    for (let i = 0; i < points.length; i += 2) c.lineTo(points[i], points[i + 1]);
    if (width) {
      c.lineWidth = width;
      c.strokeStyle = colour;
      c.stroke();
    } else {
      c.fillStyle = colour;
      c.fill();
    }
    c.globalAlpha = 1;
  }
  text(s: string, x: number, y: number, colour: string, align: "start" | "middle" | "end" = "start", room = 1e9) {
    this.c.fillStyle = colour;
    this.c.textAlign = align === "middle" ? "center" : align;
    this.c.fillText(cut(s, room), x, y);
  }
  hatch(x: number, y: number, w: number, h: number, colour: string) {
    const c = this.c;
    c.save();
    c.beginPath();
    c.rect(x, y, w, h);
    c.clip();
    c.strokeStyle = colour;
    c.lineWidth = 1;
    c.beginPath();
    for (let k = x - h; k < x + w; k += STEP) {
      c.moveTo(k, y + h);
      c.lineTo(k + h, y);
    }
    c.stroke();
    c.restore();
  }
}

const escaped = (s: string) => s.replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`).replace(/[\p{Cc}\p{Cs}]/gu, "?");
const short = (x: number) => Number(x.toFixed(2));

export class SvgPen implements Pen {
  private parts: string[] = [];
  constructor(private width: number, private height: number, private background: string) {}
  rect(x: number, y: number, w: number, h: number, fill: string, alpha = 1) {
    this.parts.push(`<rect x="${short(x)}" y="${short(y)}" width="${short(w)}" height="${short(h)}" fill="${fill}" opacity="${short(alpha)}"/>`);
  }
  shape(points: number[], colour: string, width?: number, alpha = 1) {
    const list = points.map(short).join(" ");
    const style = width ? `fill="none" stroke="${colour}" stroke-width="${width}"` : `fill="${colour}"`;
    this.parts.push(`<${width ? "polyline" : "polygon"} points="${list}" ${style} opacity="${short(alpha)}"/>`);
  }
  text(s: string, x: number, y: number, colour: string, align = "start", room = 1e9) {
    this.parts.push(`<text x="${short(x)}" y="${short(y)}" fill="${colour}" text-anchor="${align}">${escaped(cut(s, room))}</text>`);
  }
  hatch(x: number, y: number, w: number, h: number, colour: string) {
    for (let k = x - h + STEP; k < x + w; k += STEP) {
      const a = Math.max(k, x);
      const b = Math.min(k + h, x + w);
      if (b > a) this.shape([a, y + h - (a - k), b, y + h - (b - k)], colour, 1);
    }
  }
  /** What was drawn, moved down; for several pictures in one. */
  moved(y: number) {
    return `<g transform="translate(0 ${y})">${this.parts.join("")}</g>`;
  }
  add(part: string) {
    this.parts.push(part);
  }
  toString() {
    const { width, height } = this;
    return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" ` +
      `font-family="system-ui, sans-serif" font-size="12"><rect width="${width}" height="${height}" fill="${this.background}"/>${this.parts.join("")}</svg>\n`;
  }
}

/** Colours of the page as it is shown now: light or dark. */
export function colours() {
  const style = getComputedStyle(document.documentElement);
  const get = (name: string) => style.getPropertyValue(`--${name}`).trim();
  return { ink: get("ink"), dim: get("dim"), line: get("line"), back: get("back"), panel: get("panel"), accent: get("accent") };
}

/** Seen apart by people who see few colours. */
export const SET = ["#4477aa", "#ee7733", "#228833", "#aa3377", "#66ccee", "#ccbb44", "#8866cc", "#bb5544"];

/** Black or white, whichever is read better on a colour "#rrggbb" that shows `alpha` of itself on the page. */
export function ink_on(colour: string, alpha = 1): string {
  const { ink, back } = colours();
  if (colour.length !== 7 || alpha < 0.6) return ink;
  const [c, b] = [colour, back].map((h) => [1, 3, 5].map((i) => Number.parseInt(h.slice(i, i + 2), 16)));
  const [red, green, blue] = c.map((x, i) => (x * alpha + b[i] * (1 - alpha)) / 255);
  return 0.3 * red + 0.59 * green + 0.11 * blue > 0.55 ? "#111111" : "#ffffff";
}

/** A canvas that a picture is drawn on, at the screen's resolution, again whenever its width changes. */
export class Picture {
  readonly canvas = document.createElement("canvas");
  width = 0;
  constructor(label: string, public height: number, private draw: (pen: Pen, width: number, height: number) => void) {
    this.canvas.setAttribute("aria-label", label);
    this.canvas.setAttribute("role", "img");
    new ResizeObserver(() => this.paint()).observe(this.canvas);
  }
  resize(height: number) {
    this.height = height;
    this.paint();
  }
  paint() {
    const width = this.canvas.clientWidth;
    if (!width) return;
    const ratio = window.devicePixelRatio || 1;
    this.width = width;
    this.canvas.style.height = `${this.height}px`;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(this.height * ratio);
    const c = this.canvas.getContext("2d")!;
    c.scale(ratio, ratio);
    this.draw(new CanvasPen(c), width, this.height);
  }
  svg_pen(): SvgPen {
    const width = this.width || 1000;
    const pen = new SvgPen(width, this.height, colours().panel);
    this.draw(pen, width, this.height);
    return pen;
  }
  svg(): string {
    return this.svg_pen().toString();
  }
}

/** Pictures one below the other. */
export function svg_of(pictures: Picture[]): string {
  const all = new SvgPen(Math.max(...pictures.map((p) => p.width || 1000)), pictures.reduce((sum, p) => sum + p.height + 6, 0), colours().panel);
  let y = 0;
  for (const p of pictures) {
    all.add(p.svg_pen().moved(y));
    y += p.height + 6;
  }
  return all.toString();
}
