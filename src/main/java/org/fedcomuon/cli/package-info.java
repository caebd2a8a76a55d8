/**
 * The command line: one class a command, each of them thin. A command parses, calls the layer below, prints; it holds
 * no logic that a program using the library would miss.
 *
 * <p>To add a command, write a {@link picocli.CommandLine.Command} class here and name it in the {@code subcommands} of
 * {@link org.fedcomuon.cli.Main}. {@code --help}, {@code --version} and {@code --verbose} come with it. A command does
 * not print its errors and does not choose its exit code: it throws, {@link org.fedcomuon.cli.UsageException} for input
 * that somebody has to correct, and {@code Failures} makes the line on standard error and the exit code out of it.
 */
@NullMarked
package org.fedcomuon.cli;

import org.jspecify.annotations.NullMarked;
