"""Makes a tiny planner checkpoint (Qwen3 with audio codes in its vocabulary, random weights) and its fp32 answers.

usage: python3 planner_oracle.py OUT TOKENIZER_JSON ACESTEP_SOURCE SEED

OUT gets ace-tiny-planner/ and ace-tiny-planner.fixture.{json,safetensors}. The forward pass is transformers' own (CPU,
fp32, eager attention); the metadata phase is restricted by the authors' own processor, read from a checkout of
ace-step/ACE-Step-1.5; the chat and the guided loop are written here from their description.
"""
import importlib, json, math, os, sys, types

import torch
from safetensors.torch import save_file

CODES, ROWS = 640, 2304
FIELDS = ["bpm", "caption", "duration", "keyscale", "language", "timesignature"]
INSTRUCTION = "Generate audio semantic tokens based on the given conditions:"


def make_tokenizer(source, out):
    from tokenizers import AddedToken, Tokenizer
    from transformers import PreTrainedTokenizerFast
    tokenizer = Tokenizer.from_file(source)
    # Field names are one token each, so that every way to spell them is the same.
    tokenizer.add_tokens([AddedToken(t, normalized=False) for t in ["<think>", "</think>", *FIELDS]])
    tokenizer.add_special_tokens([AddedToken(f"<|audio_code_{i}|>", special=True, normalized=False) for i in range(CODES)])
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|im_end|>", pad_token="<|endoftext|>")
    fast.save_pretrained(out)
    return fast


def make_model(out, seed):
    from transformers import AutoModelForCausalLM, Qwen3Config, Qwen3ForCausalLM
    config = Qwen3Config(vocab_size=ROWS, hidden_size=128, intermediate_size=256, num_hidden_layers=2, num_attention_heads=2,
                         num_key_value_heads=1, head_dim=64, tie_word_embeddings=True, max_position_embeddings=4096,
                         rope_parameters={"rope_type": "default", "rope_theta": 1e6}, rms_norm_eps=1e-6)
    model = Qwen3ForCausalLM(config)
    generator = torch.Generator().manual_seed(seed)
    for name, p in sorted(model.named_parameters()):
        with torch.no_grad():
            if "norm" in name: p.copy_(1 + torch.randn(p.shape, generator=generator) * .1)
            elif "embed" in name: p.copy_(torch.randn(p.shape, generator=generator) * .3)
            else: p.copy_(torch.randn(p.shape, generator=generator) * (1.6 / math.sqrt(p.shape[1])))
    model.to(torch.bfloat16).save_pretrained(out)
    return AutoModelForCausalLM.from_pretrained(out, dtype=torch.float32, attn_implementation="eager").eval()


def chat(user):
    return (f"<|im_start|>system\n# Instruction\n{INSTRUCTION}\n\n<|im_end|>\n<|im_start|>user\n{user}<|im_end|>\n"
            "<|im_start|>assistant\n")


@torch.no_grad()
def logits_after(model, ids):
    return model(input_ids=torch.tensor([ids]), use_cache=False).logits[0, -1].float()


def authors_processor(source, tokenizer):
    logger = types.SimpleNamespace(**{name: (lambda *a, **k: None) for name in ("debug", "info", "warning", "error")})
    sys.modules["loguru"] = types.SimpleNamespace(logger=logger)
    package = types.ModuleType("acestep")
    package.__path__ = [source]
    sys.modules["acestep"] = package
    module = importlib.import_module("acestep.constrained_logits_processor")
    return module.MetadataConstrainedLogitsProcessor(tokenizer)


def metadata_phase(model, tokenizer, processor, prompt, unguided, guidance, given):
    """The most likely allowed tokens up to the end of the thought."""
    processor.reset()
    processor.set_user_metadata(given)
    processor.set_stop_at_reasoning(True)
    processor.set_skip_genres(True)
    processor.set_skip_caption(True)
    processor.set_skip_language(False)
    processor.set_generation_phase("cot")
    written = []
    while len(written) < 200:
        a, b = logits_after(model, prompt + written), logits_after(model, unguided + written)
        scores = (b + guidance * (a - b))[None]
        scores = processor(torch.tensor([prompt + written]), scores)
        token = int(scores[0].argmax())
        if token == tokenizer.eos_token_id: return written
        processor.update_state(token)
        written.append(token)
    raise SystemExit("the metadata did not end")


def codes_phase(model, first_code, prompt, unguided, guidance, count):
    written = []
    for _ in range(count):
        a, b = logits_after(model, prompt + written), logits_after(model, unguided + written)
        scores = (b + guidance * (a - b))[first_code:first_code + CODES]
        written.append(first_code + int(scores.argmax()))
    return [token - first_code for token in written]


def main():
    out, tokenizer_json, acestep, seed = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
    torch.manual_seed(seed)
    directory = f"{out}/ace-tiny-planner"
    os.makedirs(directory, exist_ok=True)
    tokenizer, model = make_tokenizer(tokenizer_json, directory), make_model(directory, seed)
    processor = authors_processor(acestep, tokenizer)
    first_code = tokenizer.convert_tokens_to_ids("<|audio_code_0|>")
    songs = [dict(id="a", caption="calm piano, late refund", lyrics="[Verse]\nthe late order broke\n[Chorus]\nplease cancel it", given={}),
             dict(id="b", caption="Energetic 电子 beat with café noise", lyrics="[Instrumental]", given={"bpm": "120", "timesignature": "3"}),
             dict(id="c", caption="pump and valve", lyrics="", given={"duration": "30", "language": "en", "keyscale": "F# minor"})]
    document, tensors, generator = {"model": "ace-tiny-planner", "guidance": 2.0, "songs": []}, {}, torch.Generator().manual_seed(seed + 1)
    for song in songs:
        block = f"# Caption\n{song['caption']}\n\n# Lyric\n{song['lyrics']}\n"
        texts = {"metadata": chat(block), "metadata_unguided": chat(f"# Lyric\n{song['lyrics']}\n")}
        ids = {k: tokenizer(v, add_special_tokens=False).input_ids for k, v in texts.items()}
        thought = metadata_phase(model, tokenizer, processor, ids["metadata"], ids["metadata_unguided"], 2.0, dict(song["given"]))
        lines = tokenizer.decode(thought)
        # Of the closing tag nothing was written; the lines end in a newline.
        body = lines[lines.index("\n") + 1:]
        texts |= {"codes": texts["metadata"] + "<think>\n" + body + "</think>\n\n", "codes_unguided": chat(block) + "<think>\n\n</think>\n\n"}
        ids |= {k: tokenizer(texts[k], add_special_tokens=False).input_ids for k in ("codes", "codes_unguided")}
        forced = (first_code + torch.randint(0, CODES, (6,), generator=generator)).tolist()
        rows = [logits_after(model, ids["codes"] + forced[:n]) for n in range(len(forced) + 1)]
        tensors[f"{song['id']}.logits"] = torch.stack(rows)
        song |= {"texts": texts, "ids": ids, "metadata_tokens": thought, "metadata_lines": body,
                 "forced_tokens": forced, "codes": codes_phase(model, first_code, ids["codes"], ids["codes_unguided"], 2.0, 12)}
        document["songs"].append(song)
        print(song["id"], repr(body), song["codes"])
    save_file(tensors, f"{out}/ace-tiny-planner.fixture.safetensors")
    json.dump(document, open(f"{out}/ace-tiny-planner.fixture.json", "w"), ensure_ascii=False, indent=1)


main()
