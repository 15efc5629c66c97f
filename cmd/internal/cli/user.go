package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/zephbot/zephbot/bot/privacy"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/cmd/internal/upkeep"
)

func (c *command) userCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "user", Short: "Export or erase what is stored about a person", Args: oneOfSubs, RunE: needSub,
		Long: "Exports or erases what is stored about a person, whether or not a service runs. ID is " +
			"telegram:42, a number " +
			"for telegram:…, or terminal:local.\nOf somebody about whom nothing is stored it says so, with " +
			"exit code 0.",
	}
	var to string
	export := &cobra.Command{
		Use: "export ID", Short: "Write everything that is stored about a person to a ZIP", Args: cobra.ExactArgs(1),
		Long: "Writes everything that is stored about a person to a ZIP with a README: conversations, " +
			"files, memories, " +
			"settings, usage, lines of the audit log.\nCredentials are removed; what others said in groups " +
			"is not in it.",
		Example: "  zephbot user export telegram:42 -o ann.zip",
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withUser(args[0], func(u *upkeep.User) error { return c.exportUser(cmd.Context(), u, to) })
		},
	}
	export.Flags().StringVarP(&to, "output", "o", "", "the file, or - for stdout (default export-ID.zip here)")
	var sure, look, asJSON bool
	erase := &cobra.Command{
		Use:   "erase ID",
		Short: "Erase a person, and print a receipt of what went and what stays",
		Args:  cobra.ExactArgs(1),
		Long: "Erases what is stored about a person, for good, and prints a receipt: what went, what stays and " +
			"why. A running " +
			"service does it, and this waits for its receipt.\nInterrupted anywhere, the next start of the " +
			"service, or the " +
			"same command, finishes it.",
		Example: "  zephbot user erase telegram:42 --dry-run",
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withUser(args[0], func(u *upkeep.User) error {
				return c.eraseUser(cmd.Context(), u, sure, look, asJSON)
			})
		},
	}
	erase.Flags().BoolVar(&sure, "yes", false, "do not ask")
	erase.Flags().BoolVar(&look, "dry-run", false, "only show what would go")
	erase.Flags().BoolVar(&asJSON, "json", false, "print the receipt as JSON")
	cmd.AddCommand(export, erase)
	return cmd
}

func (c *command) withUser(id string, do func(u *upkeep.User) error) error {
	cfg, err := c.load()
	if err != nil {
		return err
	}
	u, err := upkeep.FindUser(c.options(cfg), id)
	if err != nil {
		return err
	}
	return do(u)
}

func (c *command) exportUser(ctx context.Context, u *upkeep.User, to string) error {
	lang := language(c.env.Environ)
	if to == "-" {
		return c.unlessNothing(u, u.Export(ctx, lang, c.env.Out))
	}
	if to == "" {
		to = "export-" + strings.ReplaceAll(u.Person.Caller(), ":", "-") + ".zip"
	}
	if !filepath.IsAbs(to) {
		to = filepath.Join(c.env.WorkDir, to)
	}
	f, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, os.ErrExist) {
		return usageError{fmt.Errorf("%s exists already; name another file with -o", to)}
	}
	if err != nil {
		return err
	}
	err = u.Export(ctx, lang, f)
	if err = errors.Join(err, f.Close()); err != nil {
		return c.unlessNothing(u, errors.Join(err, os.Remove(to)))
	}
	_, err = fmt.Fprintln(c.env.Err, "written: "+to)
	return err
}

// unlessNothing says that nothing is stored, which is no failure.
func (c *command) unlessNothing(u *upkeep.User, err error) error {
	if !errors.Is(err, privacy.ErrNothing) {
		return err
	}
	_, err = fmt.Fprintf(c.env.Err, "nothing is stored about %s\n", u.Person.Caller())
	return err
}

func (c *command) eraseUser(ctx context.Context, u *upkeep.User, sure, look, asJSON bool) error {
	found, err := u.Look(ctx)
	if err != nil {
		return err
	}
	if look || found.Empty() {
		if !asJSON && found.Empty() {
			return c.unlessNothing(u, privacy.ErrNothing)
		}
		return c.printReceipt(found, "would go", asJSON)
	}
	if !sure {
		if ok, err := c.confirm(u, found); err != nil || !ok {
			return err
		}
	}
	r, err := u.Erase(ctx, func(text string) { _, _ = fmt.Fprintln(c.env.Err, text) }) // it is a note only
	if err != nil {
		return err
	}
	if err := c.printReceipt(r, "went", asJSON); err != nil {
		return err
	}
	if len(r.Problems) > 0 {
		return fmt.Errorf(
			"not everything was erased: %s; the log says why, and the same command tries again",
			strings.Join(r.Problems, ", "),
		)
	}
	return nil
}

// confirm asks whether to erase somebody.
func (c *command) confirm(u *upkeep.User, found *privacy.Receipt) (bool, error) {
	if !c.env.InTerm {
		return false, usageError{errors.New("there is nobody to ask: give --yes, or --dry-run to see what would go")}
	}
	if err := c.printReceipt(found, "would go", false); err != nil {
		return false, err
	}
	if _, err := fmt.Fprintf(c.env.Out, "Erase %s for good? Type yes: ", u.Person.Caller()); err != nil {
		return false, err
	}
	line, _ := bufio.NewReader(c.env.In).ReadString('\n') // an end of the input is no yes
	if strings.TrimSpace(line) != "yes" {
		_, err := fmt.Fprintln(c.env.Out, "nothing was erased")
		return false, err
	}
	return true, nil
}

// printReceipt prints what went, or would go.
func (c *command) printReceipt(r *privacy.Receipt, verb string, asJSON bool) error {
	if asJSON {
		return c.printJSON(r)
	}
	text := texts.Words{}.ForgetReceipt("en", r.Words())
	if verb != "went" {
		_, rest, _ := strings.Cut(text, "\n")
		text = "This would go:\n" + rest
	}
	_, err := fmt.Fprintln(c.env.Out, text)
	return err
}
