package cli

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dsasched/dsasched/hardware/isa"
	"github.com/dsasched/dsasched/model/schedulefile"
	"github.com/dsasched/dsasched/plots"
	"github.com/dsasched/dsasched/plots/recording"
	"github.com/dsasched/dsasched/scheduler"
	"github.com/dsasched/dsasched/scheduler/picture"
)

// pictures are the drawings that a command can make of a simulated schedule.
type pictures struct {
	trace, gantt *outFile
	html         *outFile // the page of the schedule
	against      *string  // the file of a schedule beside it
}

// writeTrace writes Chrome trace events. System exchange sets it; without it there is no --trace.
var writeTrace func(context.Context, io.Writer, *isa.Program) error

func addPictures(cmd *cobra.Command) *pictures {
	d := &pictures{
		trace: &outFile{},
		gantt: addFigure(cmd, "gantt", "draw what the first cluster's units did into this `file`"),
		html: addFile(cmd, "html",
			"write the schedule as one page to this `file` (.html): timeline, memories, order, critical path, reasons, graph",
			".html"),
	}
	if writeTrace != nil {
		d.trace = addFile(cmd, "trace",
			"write the simulation as Chrome trace events to this `file` (.json), for ui.perfetto.dev or chrome://tracing")
	}
	d.against = cmd.Flags().String("against", "",
		"with --html: the `file` of another schedule of the same network and batch to show beside it")
	return d
}

// check finds mistakes before any work is done.
func (d *pictures) check() error {
	if *d.against != "" && d.html.name == "" {
		return usagef("--against needs --html: it is shown on that page")
	}
	return nil
}

// draw writes the files, and none any more after one that fails.
func (d *pictures) draw(cmd *cobra.Command, origin schedulefile.Origin, r *scheduler.Result) (
	written []string, err error) {
	return writeFiles([]fileToWrite{
		{d.trace, func(w io.Writer) error { return writeTrace(cmd.Context(), w, r.Program) }},
		{d.html, func(w io.Writer) error { return d.page(cmd, w, origin, r) }},
		{d.gantt, func(w io.Writer) error {
			fig, err := picture.Gantt(r)
			return writeFigure(w, "--gantt", d.gantt.name, fig, err)
		}},
	})
}

// page writes the page of a schedule, beside the one that it is compared with.
func (d *pictures) page(cmd *cobra.Command, w io.Writer, origin schedulefile.Origin, r *scheduler.Result) error {
	list := []recording.Shown{{Result: r, Options: scheduler.Options{InPlace: origin.InPlace}}}
	if *d.against != "" {
		other, err := shownFile(cmd, *d.against, givenHardware(cmd))
		if err != nil {
			return err
		}
		list = []recording.Shown{other, list[0]}
	}
	html, err := recording.Page(list)
	if err != nil {
		return err
	}
	_, err = w.Write(html)
	return err
}

// plotFormats write a figure by the ending of the file.
var plotFormats = map[string]func(*plots.Figure) ([]byte, error){
	".svg": (*plots.Figure).SVG, ".png": (*plots.Figure).PNG, ".pdf": (*plots.Figure).PDF,
}

// addFigure adds a flag for the file of a figure.
func addFigure(cmd *cobra.Command, name, usage string) *outFile {
	return addFile(cmd, name, usage+": .svg, .png, .pdf", ".svg", ".png", ".pdf")
}

// writeFigure writes a figure in the format of a file's name, unless it could not be
// drawn; what asked for it is named in errors.
func writeFigure(w io.Writer, what, file string, f *plots.Figure, err error) error {
	var data []byte
	if err == nil {
		data, err = plotFormats[strings.ToLower(filepath.Ext(file))](f)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	_, err = w.Write(data)
	return err
}
