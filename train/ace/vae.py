"""The Oobleck autoencoder (huggingface/diffusers, src/diffusers/models/autoencoders/autoencoder_oobleck.py).

Inside, a signal is an image of height 1, since convolutions of images may have their channels last, which tensor cores
read without turning them round. Activations have the type of the input, parameters stay in fp32."""

import math

import torch
import torch.nn.functional as F
from torch import nn

STRIDES = (2, 4, 4, 6, 10)  # from the audio side inwards
SAMPLES = math.prod(STRIDES)
DILATIONS = (1, 3, 9)
LATENT = 64


def snake_value(x, alpha, inverse_beta):
    return x + inverse_beta * torch.sin(alpha * x).square()


def snake_gradients(gradient, x, alpha, inverse_beta):
    """By x, by log alpha and by log beta."""
    angle = alpha * x
    sine, slope = torch.sin(angle), torch.sin(2 * angle) * inverse_beta
    by_x = gradient * (1 + alpha * slope)
    by_alpha = (gradient * angle * slope).sum((0, 2, 3), keepdim=True, dtype=torch.float32)
    by_beta = -(gradient * inverse_beta * sine.square()).sum((0, 2, 3), keepdim=True, dtype=torch.float32)
    return by_x, by_alpha, by_beta


class SnakeFunction(torch.autograd.Function):
    """x + sin²(αx)/β, of which only x is kept for the gradient. `value` and `gradients` may be compiled."""

    value, gradients = staticmethod(snake_value), staticmethod(snake_gradients)

    @staticmethod
    def forward(context, x, alpha, beta):
        shape = (1, -1, 1, 1)
        alpha, inverse_beta = alpha.exp().view(shape).to(x.dtype), (1 / (beta.exp() + 1e-9)).view(shape).to(x.dtype)
        context.save_for_backward(x, alpha, inverse_beta)
        return SnakeFunction.value(x, alpha, inverse_beta)

    @staticmethod
    def backward(context, gradient):
        by_x, by_alpha, by_beta = SnakeFunction.gradients(gradient, *context.saved_tensors)
        return by_x, by_alpha.view(1, -1, 1), by_beta.view(1, -1, 1)


class Snake(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.alpha, self.beta = (nn.Parameter(torch.zeros(1, channels, 1)) for _ in range(2))

    def forward(self, x):
        return SnakeFunction.apply(x, self.alpha, self.beta)


class NormedConv(nn.Module):
    """A convolution by weight_v scaled, for each index of its first dimension, to the length weight_g."""

    def __init__(self, shape, channels, bias=True, stride=1, dilation=1, padding=0, transposed=False):
        super().__init__()
        self.weight_v = nn.Parameter(torch.randn(shape) / math.sqrt(math.prod(shape[1:])))
        self.weight_g = nn.Parameter(self.weight_v.detach().flatten(1).norm(dim=1).view(-1, 1, 1))
        if bias:
            self.bias = nn.Parameter(torch.zeros(channels))
        self.given = {"stride": (1, stride), "padding": (0, padding), "dilation": (1, dilation)}
        self.run = F.conv_transpose2d if transposed else F.conv2d

    def weight(self):
        return self.weight_v * (self.weight_g / self.weight_v.flatten(1).norm(dim=1).view(-1, 1, 1))

    def forward(self, x):
        weight, bias = self.weight().unsqueeze(2).to(x.dtype), getattr(self, "bias", None)
        if x.is_cuda:
            weight = weight.contiguous(memory_format=torch.channels_last)
        return self.run(x, weight, None if bias is None else bias.to(x.dtype), **self.given)


def conv(inputs, outputs, kernel, **more):
    dilation = more.get("dilation", 1)
    return NormedConv((outputs, inputs, kernel), outputs, padding=dilation * (kernel - 1) // 2, **more)


def down(inputs, outputs, stride):
    return NormedConv((outputs, inputs, 2 * stride), outputs, stride=stride, padding=(stride + 1) // 2)


def up(inputs, outputs, stride):
    """The fan of an output is the inputs times two taps: the weights' lengths make up for what the shape hides."""
    layer = NormedConv((inputs, outputs, 2 * stride), outputs, stride=stride, padding=(stride + 1) // 2, transposed=True)
    with torch.no_grad():
        layer.weight_g.mul_(math.sqrt(outputs * stride / inputs))
    return layer


class ResidualUnit(nn.Module):
    def __init__(self, channels, dilation):
        super().__init__()
        self.snake1, self.conv1 = Snake(channels), conv(channels, channels, 7, dilation=dilation)
        self.snake2, self.conv2 = Snake(channels), conv(channels, channels, 1)
        with torch.no_grad():
            self.conv2.weight_g.mul_(0.3)

    def forward(self, x):
        return x + self.conv2(self.snake2(self.conv1(self.snake1(x))))


def add_units(block, channels):
    for i, dilation in enumerate(DILATIONS):
        setattr(block, f"res_unit{i + 1}", ResidualUnit(channels, dilation))


def run_units(block, x):
    return block.res_unit3(block.res_unit2(block.res_unit1(x)))


class EncoderBlock(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        add_units(self, inputs)
        self.snake1, self.conv1 = Snake(inputs), down(inputs, outputs, stride)

    def forward(self, x):
        return self.conv1(self.snake1(run_units(self, x)))


class DecoderBlock(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.snake1, self.conv_t1 = Snake(inputs), up(inputs, outputs, stride)
        add_units(self, outputs)

    def forward(self, x):
        return run_units(self, self.conv_t1(self.snake1(x)))


class Encoder(nn.Module):
    def __init__(self, multiples, channels=2 * LATENT):
        super().__init__()
        widths = [channels, *(channels * m for m in multiples)]
        self.conv1 = conv(2, channels, 7)
        self.block = nn.ModuleList(EncoderBlock(a, b, s) for a, b, s in zip(widths, widths[1:], STRIDES))
        self.snake1, self.conv2 = Snake(widths[-1]), conv(widths[-1], channels, 3)

    def forward(self, x):
        x = self.conv1(x)
        for block in self.block:
            x = block(x)
        return self.conv2(self.snake1(x))


class Decoder(nn.Module):
    def __init__(self, multiples, channels):
        super().__init__()
        widths = [channels, *(channels * m for m in multiples)][::-1]
        self.conv1 = conv(LATENT, widths[0], 7)
        self.block = nn.ModuleList(DecoderBlock(a, b, s) for a, b, s in zip(widths, widths[1:], STRIDES[::-1]))
        self.snake1, self.conv2 = Snake(widths[-1]), conv(widths[-1], 2, 7, bias=False)
        with torch.no_grad():
            self.conv2.weight_g.mul_(0.02)  # music is quieter than what the blocks begin with

    def forward(self, x):
        x = self.conv1(x)
        for block in self.block:
            x = block(x)
        return self.conv2(self.snake1(x))


def as_image(x):
    x = x.unsqueeze(2)
    return x.contiguous(memory_format=torch.channels_last) if x.is_cuda else x


class Vae(nn.Module):
    def __init__(self, multiples, decoder_channels):
        super().__init__()
        self.multiples, self.decoder_channels = multiples, decoder_channels
        self.encoder, self.decoder = Encoder(multiples), Decoder(multiples, decoder_channels)

    def moments(self, sound):
        """Sound [batch, 2, samples] -> mean and scale [batch, 64, frames], fp32."""
        return self.encoder(as_image(sound)).squeeze(2).float().chunk(2, 1)

    def decode(self, latents):
        """[batch, 64, frames] -> [batch, 2, samples], fp32."""
        return self.decoder(as_image(latents)).squeeze(2).float()

    def fields(self):
        return {"_class_name": "AutoencoderOobleck", "audio_channels": 2, "channel_multiples": list(self.multiples),
                "decoder_channels": self.decoder_channels, "decoder_input_channels": LATENT,
                "downsampling_ratios": list(STRIDES), "encoder_hidden_size": 2 * LATENT, "sampling_rate": 48000}  # fmt: skip
