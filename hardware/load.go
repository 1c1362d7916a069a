package hardware

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/dsasched/dsasched/internal/safefile"
	"github.com/dsasched/dsasched/internal/suggest"
)

//go:embed presets/*.yaml
var presets embed.FS

// ErrUnknownPreset is the error of Load for a name that is neither a preset nor the path of a file.
var ErrUnknownPreset = errors.New("unknown accelerator")

var library = Library{Files: presets, Unknown: ErrUnknownPreset}

// A Library holds descriptions that are built in: the files presets/NAME.yaml.
type Library struct {
	Files   fs.FS
	Unknown error // of a name that is neither a preset nor the path of a file
}

// Names lists the presets, sorted.
func (l Library) Names() []string {
	files, err := fs.ReadDir(l.Files, "presets")
	if err != nil {
		panic("hardware: " + err.Error())
	}
	var names []string
	for _, f := range files {
		names = append(names, strings.TrimSuffix(f.Name(), ".yaml"))
	}
	slices.Sort(names) // "a" before "a-b", unlike the files' names
	return names
}

// YAML is the description of a preset with its comments.
func (l Library) YAML(name string) ([]byte, error) {
	// A name with a slash would be a path in the file system of the presets.
	if nameForm.MatchString(name) {
		if data, err := fs.ReadFile(l.Files, path.Join("presets", name+".yaml")); err == nil {
			return data, nil
		}
	}
	return nil, fmt.Errorf("%w %s%s", l.Unknown, quote(name), suggest.HintOr(name, l.Names(),
		": the presets are "+suggest.Some(l.Names())+", and the name of a file ends in .yaml or .yml"))
}

// Read gives the text of a preset or a file, and the name that messages have. A file
// that is too large is cut behind one byte more than [MaxFileBytes].
func (l Library) Read(nameOrPath string) (name string, data []byte, err error) {
	if !isPath(nameOrPath) {
		data, err := l.YAML(nameOrPath)
		return "preset " + nameOrPath, data, err
	}
	data, err = safefile.ReadUpTo(nameOrPath, MaxFileBytes)
	return nameOrPath, data, err
}

// Presets lists the names of the built-in accelerators, sorted.
func Presets() []string { return library.Names() }

// PresetYAML is the description of a built-in accelerator with its comments,
// which give the source of each figure. It is a good start for one's own.
func PresetYAML(name string) ([]byte, error) { return library.YAML(name) }

// Load reads a preset by its name, or a file if nameOrPath ends in .yaml or .yml or contains a path separator.
func Load(nameOrPath string) (*Spec, error) {
	name, data, err := library.Read(nameOrPath)
	if err != nil {
		return nil, err
	}
	return Parse(name, data)
}

func isPath(s string) bool {
	return strings.HasSuffix(s, ".yaml") || strings.HasSuffix(s, ".yml") ||
		strings.ContainsRune(s, '/') || strings.ContainsRune(s, os.PathSeparator)
}
