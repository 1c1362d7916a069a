package zoo

import (
	"fmt"
	"slices"
	"sort"

	"github.com/dsasched/dsasched/internal/suggest"
	"github.com/dsasched/dsasched/model"
)

// Options selects one instance of a network.
type Options struct {
	// Batch is the number of images, sequences or queries that go through together. It has no default.
	Batch int64
	// DType is the type of activations and parameters; the zero value is F16.
	DType model.DType
}

// Info describes a network of the zoo.
type Info struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Source      string `json:"source"` // the publication, or the implementation it is identical to
	Input       string `json:"input"`  // per image, sequence or query
}

type entry struct {
	Info
	build func(name string, opt Options) (*model.Graph, error)
}

// table lists the networks. The keys of Build are the names in it.
var table = []entry{
	{Info{"resnet50", "residual network of 50 layers for image classification, v1.5 (the 3x3 convolution has the stride)",
		"He et al., CVPR 2016; torchvision resnet50", "224x224x3 image"},
		residual{Blocks: []int64{3, 4, 6, 3}, Bottleneck: true, Image: 224, Classes: 1000}.build},
	// Further convolutional networks.
	{Info{"resnet18", "residual network of 18 layers, with blocks of two 3x3 convolutions",
		"He et al., CVPR 2016; torchvision resnet18", "224x224x3 image"},
		residual{Blocks: []int64{2, 2, 2, 2}, Image: 224, Classes: 1000}.build},
	{Info{"resnet34", "residual network of 34 layers, with blocks of two 3x3 convolutions",
		"He et al., CVPR 2016; torchvision resnet34", "224x224x3 image"},
		residual{Blocks: []int64{3, 4, 6, 3}, Image: 224, Classes: 1000}.build},
	{Info{"resnet101", "residual network of 101 layers, v1.5",
		"He et al., CVPR 2016; torchvision resnet101", "224x224x3 image"},
		residual{Blocks: []int64{3, 4, 23, 3}, Bottleneck: true, Image: 224, Classes: 1000}.build},
	{Info{"resnet152", "residual network of 152 layers, v1.5",
		"He et al., CVPR 2016; torchvision resnet152", "224x224x3 image"},
		residual{Blocks: []int64{3, 8, 36, 3}, Bottleneck: true, Image: 224, Classes: 1000}.build},
	{Info{"resnext50-32x4d", "residual network of 50 layers whose 3x3 convolutions have 32 groups of 4 channels and more",
		"Xie et al., CVPR 2017; torchvision resnext50_32x4d", "224x224x3 image"},
		residual{Blocks: []int64{3, 4, 6, 3}, Bottleneck: true, Groups: 32, GroupWidth: 4,
			Image: 224, Classes: 1000}.build},
	// The notes on the paper give no more than the name, and that CUTLASS fuses the network's convolutions. CUTLASS (its
	// example 13) fuses two only if the second is 1x1 without padding; so the tailoring is taken to be that.
	{Info{"resnet18-tailor", "resnet18 tailored to fused pairs of convolutions; assumed: the second of each block is 1x1",
		"GraphTurbo, OSDI 2023, section 5.6 (which names it; the tailoring is an assumption)", "224x224x3 image"},
		residual{Blocks: []int64{2, 2, 2, 2}, Pointwise: true, Image: 224, Classes: 1000}.build},
	{Info{"vgg16", "13 convolutions of 3x3 in a row and 3 products (configuration D)",
		"Simonyan and Zisserman, ICLR 2015; torchvision vgg16", "224x224x3 image"}, vgg(2, 2, 3, 3, 3)},
	{Info{"vgg19", "16 convolutions of 3x3 in a row and 3 products (configuration E)",
		"Simonyan and Zisserman, ICLR 2015; ONNX model zoo vgg19", "224x224x3 image"}, vgg(2, 2, 4, 4, 4)},
	{Info{"alexnet", "5 convolutions, grouped and locally normalised, and 3 products; the BVLC release",
		"Krizhevsky et al., NIPS 2012; ONNX model zoo bvlcalexnet", "224x224x3 image"}, alexnet(224)},
	{Info{"squeezenet", "small network of squeezing and expanding convolutions, version 1.1",
		"Iandola et al., 2016; ONNX model zoo squeezenet1.1", "224x224x3 image"}, squeezenet},
	{Info{"inception-v1", "GoogLeNet: modules of four branches; the BVLC release without auxiliary classifiers",
		"Szegedy et al., CVPR 2015; ONNX model zoo inception_v1", "224x224x3 image"}, googlenet},
	{Info{"inception-v3", "modules of up to six branches with factorised convolutions, without the auxiliary classifier",
		"Szegedy et al., CVPR 2016; torchvision inception_v3", "299x299x3 image"}, inceptionV3},
	{Info{"mofang-inception",
		"five convolutions of the last module of inception-v3: a reading of the example in Mofang's Fig. 5",
		"Mofang, section 2.3 (the figure's labels are not in the text; see the code)", "8x8x2048 image"}, mofangInception},
	{Info{"densenet121", "every layer of a block reads all layers before it",
		"Huang et al., CVPR 2017; torchvision densenet121", "224x224x3 image"},
		dense{Blocks: []int64{6, 12, 24, 16}, Growth: 32, Stem: 64, Classes: 1000}.build},
	{Info{"mobilenetv2", "inverted residuals with depthwise convolutions, width 1",
		"Sandler et al., CVPR 2018; torchvision mobilenet_v2", "224x224x3 image"}, mobilenetv2},
	{Info{"nasnet-mobile", "searched cells of separable convolutions, NASNet-A (4 @ 1056)",
		"Zoph et al., CVPR 2018; pretrained-models.pytorch nasnetamobile", "224x224x3 image"},
		nasnet{Image: 224, Stem: 32, Filters: 44, Repeat: 4, Classes: 1000}.build},
	{Info{"nasnet-large", "searched cells of separable convolutions, NASNet-A (6 @ 4032)",
		"Zoph et al., CVPR 2018; pretrained-models.pytorch nasnetalarge", "331x331x3 image"},
		nasnet{Image: 331, Stem: 96, Filters: 168, Repeat: 6, Classes: 1000}.build},
	bertBase(128),

	// Longer sequences, vision transformers, recommendation, speech, and the examples of the GraphTurbo paper.
	bertBase(256),
	bertBase(384),
	bertBase(512),
	bertRow("bert-large-384", "BERT-large", 384, 24, 1024, 16),
	vit16("vit-b16", "ViT-B/16", "Dosovitskiy et al., ICLR 2021; torchvision vit_b_16", 224, 12, 768, 12),
	vit16("vit-b16-384", "ViT-B/16 at 384 pixels, 577 tokens",
		"Dosovitskiy et al., ICLR 2021; torchvision vit_b_16 (IMAGENET1K_SWAG_E2E_V1)", 384, 12, 768, 12),
	vit16("vit-s16", "ViT-S/16", "Touvron et al., ICML 2021 (DeiT-S); timm vit_small_patch16_224", 224, 12, 384, 6),
	vit16("vit-l16", "ViT-L/16", "Dosovitskiy et al., ICLR 2021; torchvision vit_l_16", 224, 24, 1024, 16),
	{Info{"swin-t", "vision transformer with shifted windows (Swin-T) for image classification",
		"Liu et al., ICCV 2021; torchvision swin_t", "224x224x3 image"},
		windowed{Image: 224, Patch: 4, Width: 96, Depths: []int64{2, 2, 6, 2}, Heads: []int64{3, 6, 12, 24}, Window: 7,
			Expansion: 4, Classes: 1000}.build},
	{
		Info{"dlrm",
			"recommendation model with the layers of MLPerf's; tables for Criteo Terabyte capped at 10 million rows (12.6 GB in FP16)",
			"Naumov et al., 2019; MLPerf inference, recommendation/dlrm", "13 dense features, 26 indices"},
		recommender{Dense: 13, Rows: criteoTerabyte, Bottom: []int64{512, 256, 128},
			Top: []int64{1024, 1024, 512, 256, 1}}.build},
	{Info{"dlrm-kaggle", "recommendation model with the layers and tables for Criteo Kaggle",
		"Naumov et al., 2019; DLRM repository, bench/dlrm_s_criteo_kaggle.sh", "13 dense features, 26 indices"},
		recommender{Dense: 13, Rows: criteoKaggle, Bottom: []int64{512, 256, 64, 16}, Top: []int64{512, 256, 1}}.build},
	{Info{"conformer",
		"Conformer (L) encoder for speech; the size is inferred from published throughput, the length assumed",
		"Gulati et al., Interspeech 2020", "10.24 s: 1024 frames of 80 features"},
		speech{Frames: 1024, Mels: 80, Layers: 17, Hidden: 512, Heads: 8, Kernel: 32, Expansion: 4}.build},
	{Info{"conformer-m", "Conformer (M) encoder for speech; the length is assumed",
		"Gulati et al., Interspeech 2020", "10.24 s: 1024 frames of 80 features"},
		speech{Frames: 1024, Mels: 80, Layers: 16, Hidden: 256, Heads: 4, Kernel: 32, Expansion: 4}.build},
	{Info{"conformer-s", "Conformer (S) encoder for speech; the length is assumed",
		"Gulati et al., Interspeech 2020", "10.24 s: 1024 frames of 80 features"},
		speech{Frames: 1024, Mels: 80, Layers: 16, Hidden: 144, Heads: 4, Kernel: 32, Expansion: 4}.build},
	gpt3Row("prefill", "2048 tokens", decoderLayer{Tokens: 2048, Heads: 96, Width: 128}),
	gpt3Row("decode", "a token behind 2046 others", decoderLayer{Tokens: 1, Heads: 96, Width: 128, Cached: 2046}),
	// The networks of AStitch's measurements, whose configurations it does not give.
	{Info{"transformer", "Transformer (base) for translation, decoder unrolled; lengths assumed",
		"Vaswani et al., NIPS 2017", "32 tokens, 12 tokens written"},
		translator{Source: 32, Target: 12, Layers: 6, Hidden: 512, Heads: 8, FFN: 2048, Alphabet: 32000}.build},
	{Info{"crnn", "text reader of seven convolutions and two LSTM layers in both directions, unrolled",
		"Shi et al., TPAMI 2017, Table 1", "32x100x1 image"},
		reader{Height: 32, Width: 100, Hidden: 256, Classes: 37}.build},
	{Info{"dien", "recommendation from a history of 100 items by two GRUs and attention, unrolled; tables assumed",
		"Zhou et al., AAAI 2019; sizes of the authors' implementation", "100 items, a target, a user"},
		interests{History: 100, Users: 500_000, Items: 400_000, Categories: 2_000, Embedding: 18}.build},
	{Info{"asr-encoder", "Transformer encoder for speech; size and length are assumed",
		"Dong et al., ICASSP 2018 (the family)", "5.12 s: 512 frames of 80 features"},
		hearing{Frames: 512, Mels: 80, Layers: 12, Hidden: 512, Heads: 8, FFN: 2048}.build},
	{Info{"toy-fig3", "four stages of residual blocks, each halving its tensor; the paper has 8 images per cluster",
		"Zhao et al., OSDI 2023, Fig. 2 and 3; extents chosen here", "256x256x32 tensor"},
		pyramid{Stages: 4, Channels: 32, Image: 256}.build},
	{Info{"toy-fig5",
		"a conv and an identity block of ResNet-50 (the first two of its second stage); the paper has 8 images per cluster",
		"Zhao et al., OSDI 2023, Fig. 4 and 5; He et al., CVPR 2016", "56x56x256 tensor"},
		twoBlocks(256, 128, 56)},
	{Info{"sd-unet", "U-Net of Stable Diffusion v1.5, one step",
		"Rombach et al., CVPR 2022; diffusers UNet2DConditionModel", "64x64x4 latent image, 77 text vectors"},
		stableDiffusion.build},
	{Info{"sd-unet-block", "first residual block of Stable Diffusion's U-Net with its attention",
		"Rombach et al., CVPR 2022; diffusers UNet2DConditionModel", "64x64x320 image, 77 text vectors"},
		stableDiffusion.block},
	{Info{"sd-attention", "first self-attention of Stable Diffusion's U-Net, 8 heads of 40 features",
		"Rombach et al., CVPR 2022; diffusers UNet2DConditionModel", "4096 tokens of 320 features"},
		stableDiffusion.selfAttention},
	{Info{"mamba-130m", "selective state spaces, 24 blocks; the scan as running sums",
		"Gu and Dao, 2023; state-spaces/mamba-130m", "512 tokens"}, mamba130m.build},
	{Info{"mamba-block", "a block of mamba-130m; the scan as running sums",
		"Gu and Dao, 2023; state-spaces/mamba-130m", "512 tokens of 768 features"}, mambaBlock.build},
}

func init() {
	table = slices.Concat(table,
		decoderRows("gpt2", "GPT-2 (124 M)", "Radford et al., 2019; transformers gpt2", gpt2, 1024, 1023),
		decoderRows("llama2-7b", "Llama 2 7B", "Touvron et al., 2023; transformers Llama-2-7b", llama2, 2048, 4095),
		decoderRows("llama3-8b", "Llama 3 8B", "Dubey et al., 2024; transformers Meta-Llama-3-8B", llama3, 2048, 8191),
		decoderRows("mixtral-8x7b", "Mixtral 8x7B", "Jiang et al., 2024; transformers Mixtral-8x7B", mixtral, 2048, 4095))
}

func bertBase(tokens int64) entry {
	return bertRow(fmt.Sprintf("bert-%d", tokens), "BERT-base", tokens, 12, 768, 12)
}

func bertRow(name, size string, tokens, layers, hidden, heads int64) entry {
	return entry{
		Info{name, fmt.Sprintf("%s encoder with its embeddings, without the pooler, at sequence length %d", size, tokens),
			"Devlin et al., NAACL 2019", fmt.Sprintf("%d tokens", tokens)},
		transformer{Seq: tokens, Layers: layers, Hidden: hidden, Heads: heads, FFN: 4 * hidden,
			Vocabulary: 30522, TokenTypes: 2}.build}
}

func vit16(name, size, source string, image, layers, hidden, heads int64) entry {
	return entry{Info{name, fmt.Sprintf("vision transformer (%s) for image classification", size), source,
		fmt.Sprintf("%[1]dx%[1]dx3 image", image)},
		vision{Image: image, Patch: 16, Layers: layers, Hidden: hidden, Heads: heads, FFN: 4 * hidden, Classes: 1000}.build}
}

// Names lists the networks, sorted.
func Names() []string {
	names := make([]string, len(table))
	for i, e := range table {
		names[i] = e.Name
	}
	sort.Strings(names)
	return names
}

// Describe returns what is known of a network, or false if there is none of that name.
func Describe(name string) (Info, bool) {
	e, ok := lookup(name)
	return e.Info, ok
}

// Build returns the network of that name. The graph is finished and valid.
func Build(name string, opt Options) (*model.Graph, error) {
	e, ok := lookup(name)
	if !ok {
		return nil, fmt.Errorf("unknown model %q%s", name, suggest.Expected(name, Names()))
	}
	if opt.Batch < 1 {
		return nil, fmt.Errorf("zoo: model %s with batch %d, expected at least 1", name, opt.Batch)
	}
	if !opt.DType.Valid() {
		return nil, fmt.Errorf("zoo: model %s with unknown element type %v", name, opt.DType)
	}
	g, err := e.build(name, opt)
	if err != nil {
		return nil, fmt.Errorf("zoo: batch %d: %w", opt.Batch, err)
	}
	return g, nil
}

func lookup(name string) (entry, bool) {
	for _, e := range table {
		if e.Name == name {
			return e, true
		}
	}
	return entry{}, false
}
