package harness

import "fmt"

func Plural(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func PolicyWords(p ChunkPolicy) string {
	switch p {
	case Tuned:
		return "best batches per cluster"
	case PaperChunks:
		return "the paper's batches per cluster"
	}
	return string(p)
}
