package org.fedcomuon.report;

/**
 * What any page needs. All markup is XML as well, for tools and tests that read XML only: every tag is closed, and
 * there are no entities but XML's own.
 */
final class Html {
    /** For dark paper the colours are lighter; both sets follow Okabe and Ito's, for all kinds of eyes. */
    private static final String STYLE = """
            :root {
              color-scheme: light dark;
              --paper: #ffffff; --ink: #1b1f24; --soft: #57606a; --grid: #e3e6ea; --wash: #f4f6f8; --best: #dff2e8;
              --worse: #fbe3d6; --rest: #c3c9d0;
              --c1: #0072b2; --c2: #d55e00; --c3: #00875f; --c4: #b3508c; --c5: #b07800; --c6: #3f9fdc; --c7: #85800e;
              --c8: #7a52c7; --c9: #8f4f3f;
            }
            @media (prefers-color-scheme: dark) {
              :root {
                --paper: #14171a; --ink: #e8eaed; --soft: #a7b0b9; --grid: #2d3339; --wash: #1d2125; --best: #1d3d2e;
                --worse: #4a2a18; --rest: #4b545d;
                --c1: #3d9be0; --c2: #ff7f32; --c3: #1fc295; --c4: #e691c0; --c5: #eeb02c; --c6: #93d3f8; --c7: #efe65c;
                --c8: #b9a0ff; --c9: #d9a592;
              }
            }
            * { box-sizing: border-box; }
            body { margin: 0; background: var(--paper); color: var(--ink); line-height: 1.5;
              font-family: system-ui, "Segoe UI", Roboto, "Noto Sans", "Liberation Sans", Arial, sans-serif; }
            main { max-width: 72rem; margin: 0 auto; padding: 1.5rem 1rem 3rem; overflow-wrap: anywhere; }
            h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 .3rem; }
            h2 { font-size: 1.2rem; margin: 2rem 0 .4rem; }
            p, dl, figcaption { max-width: 46rem; margin: .4rem 0; }
            .facts, figcaption { color: var(--soft); }
            figcaption { font-size: .875rem; }
            dt { font-weight: 600; }
            dd { margin: 0 0 .5rem; }
            sub, sup { line-height: 0; }
            figure { margin: 0; }
            .pair, .many { display: grid; }
            .pair { gap: 0 2rem; grid-template-columns: repeat(auto-fit, minmax(min(26rem, 100%), 1fr)); }
            .pair figure { display: flex; flex-direction: column; }
            .pair .legend { order: 1; } /* below, so that the plots begin at the same height */
            .pair figcaption { order: 2; }
            .many { gap: 1rem 1.5rem; grid-template-columns: repeat(auto-fill, minmax(min(20rem, 100%), 1fr)); }

            .plot { display: block; width: 100%; max-width: 40rem; height: auto; }
            .plot text { font-size: 12px; fill: var(--soft); font-variant-numeric: tabular-nums; }
            .plot .heading { fill: var(--ink); font-weight: 600; }
            .plot .end { text-anchor: end; }
            .plot .middle { text-anchor: middle; }
            .grid { stroke: var(--grid); }
            .axis { stroke: var(--soft); fill: none; }
            .line { stroke: var(--c); stroke-width: 1.75; stroke-linejoin: round; fill: none; }
            .mark { stroke: var(--c); stroke-width: 1.5; fill: var(--c); vector-effect: non-scaling-stroke; }
            .dense .line { stroke-width: 1.1; }
            .dashed .line { stroke-dasharray: 5 3; }
            .dotted .line { stroke-dasharray: 1.5 2.5; }
            .dashdot .line { stroke-dasharray: 7 2.5 1.5 2.5; }
            .dashed .mark, .dotted .mark, .dashdot .mark { fill: none; }
            .band .line { stroke: none; fill: var(--c); opacity: .2; }
            .scattered .mark { stroke-width: 1; opacity: .85; }
            .guide { --c: var(--soft); }
            .guide .line { stroke-width: 1.25; stroke-dasharray: 1 3; }
            .exact { --c: var(--ink); }
            .c1 { --c: var(--c1); } .c2 { --c: var(--c2); } .c3 { --c: var(--c3); } .c4 { --c: var(--c4); }
            .c5 { --c: var(--c5); } .c6 { --c: var(--c6); } .c7 { --c: var(--c7); } .c8 { --c: var(--c8); } .c9 { --c: var(--c9); }

            .legend { list-style: none; display: flex; flex-wrap: wrap; gap: .1rem 1rem; margin: .5rem 0; padding: 0;
              font-size: .875rem; }
            .legend button { font: inherit; color: inherit; background: none; border: 0; padding: .1rem;
              cursor: pointer; text-align: left; }
            .legend button[aria-pressed="false"] { opacity: .45; text-decoration: line-through; }
            .key { vertical-align: -.2em; margin-right: .4em; }

            .scroll { overflow-x: auto; }
            table { border-collapse: collapse; font-size: .875rem; font-variant-numeric: tabular-nums;
              overflow-wrap: normal; width: 100%; }
            th, td { padding: .2rem .6rem; text-align: right; white-space: nowrap; }
            thead th { vertical-align: bottom; white-space: normal; border-bottom: 1px solid var(--soft); }
            tbody tr + tr > * { border-top: 1px solid var(--grid); }
            .text { text-align: left; white-space: normal; min-width: 9rem; max-width: 20rem; overflow-wrap: anywhere; }
            tbody .text { font-weight: 400; }
            th:first-child { position: sticky; left: 0; background: var(--paper); }
            .compact .text { min-width: 0; overflow-wrap: normal; }
            @media (max-width: 30rem) {
              .compact { font-size: .75rem; }
              .compact th, .compact td { padding: .2rem; white-space: normal; }
            }
            @media (min-width: 60rem) { th.text:first-child { min-width: 16.5rem; } }
            .runs { width: auto; }
            .runs th.text:first-child { min-width: 8rem; }
            @media (min-width: 60rem) { .runs th.text:first-child { min-width: 11.5rem; } }
            .runs th, .runs td { padding: .2rem .45rem; }
            tr.group th { text-align: left; background: var(--wash); padding-top: .45rem; }
            .group span { position: sticky; left: .6rem; }
            .best { background: var(--best); font-weight: 600; }
            .best::before { content: "★ "; }
            .agrees { background: var(--best); }
            .differs { background: var(--worse); }
            .warning { background: var(--worse); padding: .3rem .6rem; }
            .bar { display: block; width: 100%; height: .9rem; }
            .bar rect, .swatch { fill: var(--c); }
            .rest { --c: var(--rest); }
            .shares { margin: 0; }
            .shares p { display: flex; justify-content: space-between; gap: 1rem; margin: 0; font-size: .875rem; }
            .shares ul { list-style: none; display: flex; flex-wrap: wrap; gap: 0 .9rem; margin: 0; padding: 0;
              font-size: .8125rem; color: var(--soft); font-variant-numeric: tabular-nums; }
            .settings { max-width: none; display: grid; gap: .1rem 1.5rem;
              grid-template-columns: repeat(auto-fill, minmax(min(16rem, 100%), 1fr)); font-size: .875rem; }
            .settings div { display: flex; justify-content: space-between; gap: 1rem;
              border-bottom: 1px solid var(--grid); padding: .1rem 0; }
            .settings dt { font-weight: 400; color: var(--soft); overflow-wrap: normal; }
            .settings dd { margin: 0; text-align: right; }
            .settings .wide { grid-column: 1 / -1; justify-content: flex-start; }
            .settings .wide dd { text-align: left; }
            summary { cursor: pointer; margin: .4rem 0; }
            th small, td small { display: block; color: var(--soft); font-weight: 400; }

            @media print {
              body { font-size: 10pt; }
              main { max-width: none; padding: 0; }
              .pair { grid-template-columns: 1fr 1fr; }
              .legend { break-after: avoid; }
              .scroll { overflow: visible; }
              table { font-size: 7.5pt; }
              th, td { padding: .1rem .3rem; }
              svg, tbody { break-inside: avoid; }
              h2 { break-after: avoid; }
            }
            """;

    /** Lets a reader hide lines that hide others. It must not contain what XML would take for markup. */
    private static final String SCRIPT = """
            for (const item of document.querySelectorAll('.legend li')) {
              const button = document.createElement('button');
              button.type = 'button';
              button.title = 'show or hide';
              button.setAttribute('aria-pressed', 'true');
              button.append(...item.childNodes);
              button.onclick = () => {
                const shown = button.getAttribute('aria-pressed') === 'false';
                button.setAttribute('aria-pressed', shown);
                for (const line of item.closest('figure').querySelectorAll(`g[data-series="${item.dataset.series}"]`)) {
                  line.style.display = shown ? '' : 'none';
                }
              };
              item.append(button);
            }
            """;

    private Html() {}

    /**
     * A whole document.
     *
     * @param title as text
     * @param body as markup
     */
    static String document(String title, String body) {
        // the policy forbids what nothing here asks for anyway: to load anything from anywhere
        return """
                <!DOCTYPE html>
                <html lang="en">
                <head>
                <meta charset="utf-8"/>
                <meta name="viewport" content="width=device-width, initial-scale=1"/>
                <meta http-equiv="Content-Security-Policy"
                  content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"/>
                <title>%s</title>
                <style>
                %s</style>
                </head>
                <body>
                <main>
                %s</main>
                <script>
                %s</script>
                </body>
                </html>
                """.formatted(escape(title), STYLE, body, SCRIPT);
    }

    /** Text as it stands in markup, within an element or a quoted attribute. */
    static String escape(String text) {
        var escaped = new StringBuilder(text.length());
        text.codePoints().forEach(c -> {
            switch (c) {
                case '&' -> escaped.append("&amp;");
                case '<' -> escaped.append("&lt;");
                case '>' -> escaped.append("&gt;");
                case '"' -> escaped.append("&quot;");
                case '\'' -> escaped.append("&#39;");
                default -> escaped.appendCodePoint(isXml(c) ? c : '\uFFFD');
            }
        });
        return escaped.toString();
    }

    /** XML 1.0 has no way at all to write the other ones. */
    private static boolean isXml(int c) {
        return c == '\t'
                || c == '\n'
                || c == '\r'
                || (c >= ' ' && c <= 0xD7FF)
                || (c >= 0xE000 && c <= 0xFFFD)
                || c >= 0x10000;
    }
}
