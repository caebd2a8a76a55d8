/**
 * Charts as inline SVG, drawn in one place for the reports and the live page; {@code chart.css} has their colours. Not
 * an API: only the dashboard and the reports use it.
 */
@NullMarked
package org.fedcomuon.chart;

import org.jspecify.annotations.NullMarked;
