package cli

import (
	"context"

	"github.com/spf13/cobra"
)

func (s *session) demoCommand() *cobra.Command {
	return &cobra.Command{Use: "demo", Short: "Show what it does, in a temporary directory", Args: args(0, 0, "no argument"),
		RunE: func(c *cobra.Command, _ []string) error { return s.demo(c.Context()) }}
}

func (s *session) demo(ctx context.Context) error { return nil }
