package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/dsasched/dsasched/experiments/variant"
)

// pictures are the pictures of a simulated schedule that a command can make.
type pictures struct {
}

func addPictures(cmd *cobra.Command) *pictures {
	return &pictures{}
}

func (d *pictures) check() error { return nil }

func (d *pictures) draw(ctx context.Context, r *variant.Result) error { return nil }
