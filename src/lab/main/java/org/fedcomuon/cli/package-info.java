/**
 * The command line: one thin class per command. A command parses its options, calls the layer below and prints; it has
 * no logic that a program using the library would need.
 *
 * <p>To add a command, write a {@link picocli.CommandLine.Command} class here and name it in the {@code subcommands} of
 * {@link org.fedcomuon.cli.Main}. {@code --help}, {@code --version} and {@code --verbose} come with it. A command does
 * not print its errors and does not choose its exit code: it throws, {@link org.fedcomuon.cli.UsageException} for input
 * that the user has to correct, and {@code Failures} turns the exception into a line on standard error and an exit
 * code.
 */
@NullMarked
package org.fedcomuon.cli;

import org.jspecify.annotations.NullMarked;
