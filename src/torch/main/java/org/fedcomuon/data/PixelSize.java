package org.fedcomuon.data;

/**
 * The size of an image, as the header of its file says it.
 *
 * @param cols pixels per row
 * @param rows at least 1, as cols
 * @param channels 1 for grey, 3 for colours, and one more with an alpha channel
 */
record PixelSize(int cols, int rows, int channels) {
    /** Returns whether it has no colours. */
    boolean isGrey() {
        return channels < 3;
    }
}
