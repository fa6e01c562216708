"""Makes a tiny ACE-Step 1.5 checkpoint in the diffusers layout (random weights, real head size and VAE strides) and its
fp32 CPU answers, by diffusers' own AceStepPipeline. usage: python3 ace_oracle.py OUT SEED fixture|heldout TOKENIZER_DIR
"""
import json, math, os, sys
import torch
from safetensors.torch import save_file

def randomize(model, seed):
    g = torch.Generator().manual_seed(seed)
    for name, p in sorted(model.named_parameters()):
        with torch.no_grad():
            if name.endswith(("alpha", "beta")): p.copy_(torch.randn(p.shape, generator=g) * .3)
            elif "weight_g" in name or name.endswith("original0"): p.copy_(torch.rand(p.shape, generator=g) * .5 + .5)
            elif "norm" in name and p.ndim == 1: p.copy_(1 + torch.randn(p.shape, generator=g) * .1)
            elif p.ndim == 1: p.copy_(torch.randn(p.shape, generator=g) * .05)
            elif "scale_shift_table" in name: p.copy_(torch.randn(p.shape, generator=g) * .3)
            elif "special_token" in name or "null_condition" in name: p.copy_(torch.randn(p.shape, generator=g))
            elif "embed_tokens.weight" in name and p.shape[0] > 1000: p.copy_(torch.randn(p.shape, generator=g))
            else: p.copy_(torch.randn(p.shape, generator=g) / math.sqrt(p[0].numel()))
    return model

def main():
    out, seed, role = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    os.makedirs(out, exist_ok=True); torch.manual_seed(seed); torch.set_num_threads(8)
    import diffusers
    from diffusers import AutoencoderOobleck, FlowMatchEulerDiscreteScheduler
    from diffusers.models.transformers.ace_step_transformer import AceStepTransformer1DModel
    from diffusers.pipelines.ace_step.modeling_ace_step import AceStepAudioTokenDetokenizer, AceStepAudioTokenizer, AceStepConditionEncoder
    from diffusers.pipelines.ace_step.pipeline_ace_step import AceStepPipeline
    from transformers import AutoTokenizer, Qwen3Config, Qwen3Model
    tok = AutoTokenizer.from_pretrained(sys.argv[4])
    att = dict(num_attention_heads=2, num_key_value_heads=1, head_dim=128, rms_norm_eps=1e-6, rope_theta=1e6)
    dims = dict(hidden_size=256, intermediate_size=512, sliding_window=16, **att)
    text_dim = 128
    # 1 text encoder, 2 DiT, 3 condition encoder, 4 audio tokenizer + detokenizer, 5 VAE
    te = randomize(Qwen3Model(Qwen3Config(vocab_size=1536, hidden_size=text_dim, intermediate_size=256, num_hidden_layers=3, num_attention_heads=2,
         num_key_value_heads=1, head_dim=128, rope_parameters={"rope_type": "default", "rope_theta": 1e6}, rms_norm_eps=1e-6, tie_word_embeddings=True)), seed)
    dit = randomize(AceStepTransformer1DModel(num_hidden_layers=4, in_channels=192, audio_acoustic_hidden_dim=64, patch_size=2, is_turbo=True, model_version="turbo", **dims), seed + 1)
    cond = randomize(AceStepConditionEncoder(text_hidden_dim=text_dim, timbre_hidden_dim=64, num_lyric_encoder_hidden_layers=2, num_timbre_encoder_hidden_layers=2, **dims), seed + 2)
    g = torch.Generator().manual_seed(seed + 3)
    cond.silence_latent = (torch.randn(1, 900, 64, generator=g) * .3).to(torch.float32)
    pool = dict(num_attention_pooler_hidden_layers=2, audio_acoustic_hidden_dim=64, pool_window_size=5, **dims)
    atok = randomize(AceStepAudioTokenizer(fsq_dim=256, fsq_input_levels=[8, 8, 8, 5, 5, 5], **pool), seed + 4)
    adet = randomize(AceStepAudioTokenDetokenizer(**pool), seed + 5)
    vae = randomize(AutoencoderOobleck(encoder_hidden_size=128, downsampling_ratios=[2, 4, 4, 6, 10], channel_multiples=[1, 1, 1, 2, 2], decoder_channels=32,
          decoder_input_channels=64, audio_channels=2, sampling_rate=48000), seed + 6)
    for m in (te, dit, cond, atok, adet, vae):           # weights as a checkpoint stores them: bf16
        for p in m.parameters(): p.data = p.data.to(torch.bfloat16).float()
        m.eval()
    cond.silence_latent = cond.silence_latent.to(torch.bfloat16).float()
    pipe = AceStepPipeline(vae=vae, text_encoder=te, tokenizer=tok, transformer=dit, condition_encoder=cond,
                           scheduler=FlowMatchEulerDiscreteScheduler(num_train_timesteps=1, shift=1.0), audio_tokenizer=atok, audio_token_detokenizer=adet)
    for m in (te, dit, cond, atok, adet, vae): m.to(torch.bfloat16)
    pipe.save_pretrained(f"{out}/ace-tiny", safe_serialization=True)
    for m in (te, dit, cond, atok, adet, vae): m.float()
    pipe.set_progress_bar_config(disable=True)
    cases = [dict(id="a", prompt="calm piano, late refund", lyrics="[Verse]\nthe late order broke\n[Chorus]\nplease cancel it", audio_duration=2.0, bpm=96, keyscale="C minor", timesignature="4", vocal_language="en"),
             dict(id="b", prompt="Energetic 电子 beat with café noise", lyrics="[Instrumental]", audio_duration=1.32, shift=1.0, vocal_language="unknown"),
             dict(id="c", prompt="pump and valve, 5 bar", lyrics="", audio_duration=3.4, shift=2.0, num_inference_steps=4, vocal_language="ja"),
             dict(id="d", prompt="codes drive it", lyrics="[Instrumental]", audio_duration=0, audio_codes="".join(f"<|audio_code_{c}|>" for c in (0, 63999, 12345, 777, 40000, 31, 63999)), vocal_language="en"),
             dict(id="e", prompt="repaint the middle", lyrics="", audio_duration=0, task_type="repaint", repainting_start=.5, repainting_end=1.2, vocal_language="en", src=True),
             dict(id="f", prompt="cover of it", lyrics="", audio_duration=0, task_type="cover", vocal_language="en", src=True)]
    if role != "fixture":                                # other inputs on the same weights
        for k, c in enumerate(cases):
            c["prompt"] += f" variation {seed} ünïcode {k}"; c["bpm"] = 60 + 11 * k; seed += 1000
        cases[0] |= dict(audio_duration=2.6, lyrics="[Intro]\n[Verse 1]\nне спеши 等一下\n\n[Outro]"); cases[1] |= dict(audio_duration=1.0, num_inference_steps=6); cases[2] |= dict(shift=3.0, num_inference_steps=8)
        cases[4] |= dict(repainting_start=0.0, repainting_end=-1)
    doc, T = {"model": "ace-tiny", "cases": []}, {}
    grab = {}
    cond.register_forward_hook(lambda m, a, o: grab.__setitem__("cond", o[0]))
    dit.register_forward_hook(lambda m, a, kw, o: grab.setdefault("vel", []).append(o[0]), with_kwargs=True)
    enc = vae.encode
    def mean_encode(x, return_dict=True):                # the encoder's mean, so that no random draw is in an answer
        r = enc(x); r.latent_dist.sample = lambda generator=None: r.latent_dist.mean; return r
    vae.encode = mean_encode
    for c in cases:
        kw = {k: v for k, v in c.items() if k not in ("id", "src")}
        src = None
        if c.get("src"):
            t = torch.arange(96000 + 700) / 48000
            src = torch.stack([.4 * torch.sin(2 * math.pi * 220 * t) * torch.exp(-t), .3 * torch.sin(2 * math.pi * 331 * t + 1)]).float()
            kw["src_audio"] = src; T[f"{c['id']}.src_audio"] = src
            frames = None
        n = 35 if c["id"] == "d" else math.ceil(kw["audio_duration"] * 25) if kw["audio_duration"] else enc(src[None]).latent_dist.mean.shape[-1]
        noise = torch.randn(1, n, 64, generator=torch.Generator().manual_seed(seed + 100 + ord(c["id"])))
        grab.clear()
        lat = pipe(latents=noise, output_type="latent", guidance_scale=1.0, **kw).audios
        with torch.no_grad(): raw = vae.decode(lat.transpose(1, 2)).sample
        wav = pipe(latents=noise, output_type="pt", guidance_scale=1.0, **kw).audios
        ins = kw.get("instruction") or pipe._get_task_instruction("cover" if c["id"] == "d" else kw.get("task_type", "text2music"))
        dur = kw["audio_duration"] or (35 / 25 if c["id"] == "d" else src.shape[-1] / 48000)
        ft, fl = pipe._format_prompt(kw["prompt"], kw["lyrics"], kw["vocal_language"], dur, ins, kw.get("bpm"), kw.get("keyscale"), kw.get("timesignature"))
        steps = len(grab["vel"]) // 2
        T |= {f"{c['id']}.noise": noise[0], f"{c['id']}.condition": grab["cond"][0], f"{c['id']}.velocity_first": grab["vel"][0][0], f"{c['id']}.velocity_last": grab["vel"][steps - 1][0],
              f"{c['id']}.latents": lat[0], f"{c['id']}.raw": raw[0], f"{c['id']}.wav": wav[0]}
        doc["cases"].append({**c, "latent_frames": n, "steps": steps, "text": ft, "lyric_text": fl, "text_ids": tok(ft).input_ids, "lyric_ids": tok(fl).input_ids,
                             "raw_peak": float(raw.abs().max()), "latents_std": float(lat.std())})
        print(c["id"], "frames", n, "steps", steps, "latent std", float(lat.std()), "raw peak", float(raw.abs().max()), "finite", bool(torch.isfinite(wav).all()))
    with torch.no_grad():
        mu = enc(T["e.src_audio"][None]).latent_dist.mean; T["e.src_latents"] = mu[0].T.contiguous()
        q, idx = atok.tokenize(mu.transpose(1, 2), cond.silence_latent); T["e.codes"] = idx[0].to(torch.int32)
        h = te(input_ids=torch.tensor([doc["cases"][0]["text_ids"]])).last_hidden_state; T["a.text_hidden"] = h[0]
    save_file({k: v.detach().contiguous().clone() for k, v in T.items()}, f"{out}/ace-tiny.{role}.safetensors")
    json.dump(doc, open(f"{out}/ace-tiny.{role}.json", "w"), ensure_ascii=False, indent=1)
main()
