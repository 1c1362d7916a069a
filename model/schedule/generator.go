package schedule

// Generator holds the settings of the kernel generator.
type Generator struct {
	// KeepWeights keeps weights in the LLB from kernel to kernel.
	KeepWeights bool `json:"keep_weights"`
	// KeepInputs keeps network inputs in the LLB, while there is room, for the layers that read them again.
	KeepInputs bool `json:"keep_inputs,omitempty"`
	// CrossLayer lets loads and units overlap across the layers of a kernel (§4.4).
	CrossLayer bool `json:"cross_layer"`
	// CrossUnits lets a layer's work begin, with CrossLayer, on those parts of earlier results of
	// the kernel that are complete (Fig. 13), in place of all of them.
	CrossUnits bool `json:"cross_units,omitempty"`
	// Exposed makes the promotion of weights wait for all computation in front of it, and
	// so shows its latency, without CrossLayer.
	Exposed bool `json:"exposed,omitempty"`
	// Prefetch lets loads of weights from the DDR to the LLB run ahead of the launch of
	// the kernel that uses them: the DMA engine works on while kernels change.
	Prefetch bool `json:"prefetch"`
	// BeforeFirst lets such loads run ahead of a cluster's first launch, too, which then costs nothing where loads take
	// as long, and has as many loads under way as the machine's links allow.
	BeforeFirst bool `json:"before_first_launch,omitempty"`
	// KeepQuarters is the number of quarters of the pages that values leave free kept weights may take: 1 to 4; 0 is 2.
	KeepQuarters int `json:"keep_quarters,omitempty"`
	// Pieces is the number of pieces a layer is cut into, where its extents allow; 0 is 4. The last
	// one's vector work overlaps with nothing, and each takes commands of its own.
	Pieces int64 `json:"pieces,omitempty"`
	// WeightTiles is the least number of tiles of weights that their buffer holds, where the
	// matrix unit's geometry allows; 0: two, if all were alike.
	WeightTiles int64 `json:"weight_tiles,omitempty"`
	// LoadTiles is the number of tiles of a layer's weights one load brings from the DDR to the LLB, as
	// far as they fit there: each load has the DDR's latency. 0: one.
	LoadTiles int64 `json:"load_tiles,omitempty"`
	// WeightsFirst brings a layer's first tile of weights to the L1 in front of its inputs, which
	// may have to wait for room there.
	WeightsFirst bool `json:"weights_first,omitempty"`
	// StorePieces stores results behind each piece of rows; else behind the columns of a
	// product and behind the tile of a layer without one.
	StorePieces bool `json:"store_pieces,omitempty"`
}
