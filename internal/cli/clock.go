package cli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/minikudu/minikudu"
)

func (s *session) clockCommand() *cobra.Command {
	return &cobra.Command{Use: "clock", Short: "Print the time, also as a commit timestamp",
		Long: "Print the time and the first timestamp that a commit at that time can have. No store is opened.",
		Args: args(0, 0, "no argument"),
		RunE: func(*cobra.Command, []string) error {
			now := time.Now()
			text := formatMicros(now)
			ts := minikudu.TimestampAt(now)
			if s.json {
				return s.printJSON(struct {
					Time      string             `json:"time"`
					Timestamp minikudu.Timestamp `json:"timestamp"`
				}{text, ts})
			}
			_, err := fmt.Fprintf(s.out, "time       %s\ntimestamp  %d\n", text, ts)
			return err
		}}
}
