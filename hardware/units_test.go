package hardware

import "testing"

func TestRounded(t *testing.T) {
	for b, want := range map[Bytes]string{0: "0 B", 7: "7 B", 1023: "1023 B", 1 << 10: "1 KiB", 1500: "1.465 KiB",
		10_239:     "9.999 KiB",
		10_240_000: "9.766 MiB", 40_000_000_000: "37.25 GiB", 1<<20 - 1: "1024 KiB", 16 << 30: "16 GiB", 3 << 50: "3072 TiB",
		-1536: "-1.500 KiB"} {
		if got := b.Rounded(); got != want {
			t.Errorf("%d: %q, expected %q", int64(b), got, want)
		}
	}
}
