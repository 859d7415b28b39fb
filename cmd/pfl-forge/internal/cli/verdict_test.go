package cli

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
)

func TestVerdict(t *testing.T) {
	t.Parallel()
	root := newRoot(&kit.App{})
	code, message := verdict(t.Context(), root, fmt.Errorf("wrapped: %w", kit.Usage(errors.New("x is missing"))))
	if code != kit.ExitError || message != "wrapped: x is missing\nsee pfl-forge --help" {
		t.Errorf("usage: %d, %q", code, message)
	}
	code, message = verdict(t.Context(), root, errors.New("the disk is full"))
	if code != kit.ExitError || message != "the disk is full" {
		t.Errorf("any error: %d, %q", code, message)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(kit.ErrInterrupted)
	if code, _ = verdict(ctx, root, ctx.Err()); code != kit.ExitInterrupted {
		t.Errorf("interrupted: %d", code)
	}
}
